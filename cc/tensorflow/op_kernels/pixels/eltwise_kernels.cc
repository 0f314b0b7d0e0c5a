// BlockdnnEltwise.
#include <algorithm>
#include <memory>
#include <vector>

#include "cc/core/eltwise/eltwise.h"
#include "cc/tensorflow/attrs/attrs.h"
#include "cc/tensorflow/op_base/part_launch.h"

namespace bd {
namespace {

constexpr int kSrc = 0, kFirstArg = 1;

struct EltwiseLaunch : PartLaunch<EltwisePlan> {
  void Run(const LaunchMemory& memory, ThreadPool& pool) const {
    RunEltwise(plan->core, memory.inputs[kSrc] + src_offset, memory.inputs + kFirstArg,
               memory.dst() + dst_offset, pool);
  }
};

class EltwiseOp : public PartOpKernel<EltwiseLaunch> {
 public:
  explicit EltwiseOp(OpKernelConstruction* ctx) : PartOpKernel(ctx) {
    OP_REQUIRES_OK(ctx, attrs_.Read(ctx));
    src_part_ = attrs_.src_part;
    dst_part_ = attrs_.dst_part;
    reusable_inputs_ = {kSrc};
    for (int arg = 0; arg < attrs_.post_ops.num_args; ++arg) {
      if (ReadOnlyInPlace(arg)) reusable_inputs_.push_back(kFirstArg + arg);
    }
  }

 protected:
  BlockedTensors Blocked(OpKernelContext*) const override {
    return BlockedTensors()
        .Input(kSrc, attrs_.src_part, attrs_.layout, attrs_.channels)
        .Operands(attrs_.post_ops.chain, kFirstArg, attrs_.layout, attrs_.channels)
        .Output(0, attrs_.dst_part, attrs_.layout, attrs_.channels);
  }

 private:
  // The chain reads the operand at the element being written and nowhere else.
  bool ReadOnlyInPlace(int arg) const {
    const auto& entries = attrs_.post_ops.chain.entries();
    return std::all_of(entries.begin(), entries.end(), [arg](const PostOp& op) {
      return op.kind == PostOpKind::kEltwise || op.operand.input != arg ||
             op.kind == PostOpKind::kSum || op.shape == OperandShape::kTensor;
    });
  }

  Status MakePlan(OpKernelContext* ctx, Plan* plan) const override {
    const PartialTensorShape src = InputShape(ctx, kSrc);
    PartialTensorShape dst;
    TF_RETURN_IF_ERROR(EltwiseShape(attrs_, src, InputShapes(ctx, kFirstArg), &dst));
    TF_RETURN_IF_ERROR(ToFullShape(dst, &plan->dst_shape));
    Plane plane = {1, 1, plan->dst_shape.num_elements() / attrs_.channels};
    if (attrs_.layout != Layout::nhwc || src.dims() == 4) {
      TF_RETURN_IF_ERROR(ReadPlane("src", src, attrs_.layout,
                                   attrs_.src_part.tensor_channels(attrs_.channels), &plane));
    }
    EltwiseDesc desc;
    desc.post_ops = attrs_.post_ops.chain;
    TF_RETURN_IF_ERROR(MakeView(attrs_.layout, attrs_.channels, attrs_.src_part, plane, &desc.src));
    TF_RETURN_IF_ERROR(MakeView(attrs_.layout, attrs_.channels, attrs_.dst_part, plane, &desc.dst));
    return FromCore(MakeEltwisePlan(desc, ActiveIsa(), &plan->core));
  }

  std::string Describe(OpKernelContext*, const EltwiseLaunch& launch,
                       bool in_place) const override {
    const PostOpChain& chain = launch.plan->core.desc.post_ops;
    return absl::StrCat("eltwise ", IsaName(ActiveIsa()), " ", launch.dst_shape().DebugString(),
                        SumNote(chain, in_place && !has_into()),
                        PartNote(attrs_.src_part, attrs_.dst_part, in_place), " \"",
                        chain.ToString(), "\"");
  }

  EltwiseAttrs attrs_;
};

REGISTER_KERNEL_BUILDER(
    Name("BlockdnnEltwise").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"), EltwiseOp);

}  // namespace
}  // namespace bd
