// BlockdnnEltwise.
#include <algorithm>
#include <memory>
#include <vector>

#include "cc/core/eltwise/eltwise.h"
#include "cc/tensorflow/attrs/attrs.h"
#include "cc/tensorflow/op_base/launch.h"
#include "cc/tensorflow/op_base/plan_cache.h"

namespace bd {
namespace {

constexpr int kSrc = 0, kFirstArg = 1;

struct EltwiseOpPlan {
  EltwisePlan eltwise;
  TensorShape dst_shape;
};

struct EltwiseLaunch {
  std::shared_ptr<const EltwiseOpPlan> plan;
  int64_t src_offset = 0, dst_offset = 0;  // of parts

  const TensorShape& dst_shape(int = 0) const { return plan->dst_shape; }
  int64_t scratch_bytes() const { return 0; }
  absl::Span<const int> fixed_inputs() const { return {}; }
  bool lasts() const { return true; }
  void Run(const LaunchMemory& memory, ThreadPool& pool) const {
    RunEltwise(plan->eltwise, memory.inputs[kSrc] + src_offset, memory.inputs + kFirstArg,
               memory.dst() + dst_offset, pool);
  }
};

class EltwiseOp : public LaunchOpKernel<EltwiseLaunch> {
 public:
  explicit EltwiseOp(OpKernelConstruction* ctx) : LaunchOpKernel(ctx) {
    OP_REQUIRES_OK(ctx, attrs_.Read(ctx));
    reusable_inputs_ = {kSrc};
    for (int arg = 0; arg < attrs_.post_ops.num_args; ++arg) {
      if (ReadOnlyInPlace(arg)) reusable_inputs_.push_back(kFirstArg + arg);
    }
  }

 protected:
  Status Resolve(OpKernelContext* ctx, EltwiseLaunch* launch) override {
    TF_RETURN_IF_ERROR(plans_.Get(
        ctx, [&](EltwiseOpPlan* made) { return MakePlan(ctx, made); }, &launch->plan));
    const int64_t pixels = launch->plan->eltwise.desc.src.pixels();
    launch->src_offset = attrs_.src_part.offset(pixels);
    launch->dst_offset = attrs_.dst_part.offset(pixels);
    return absl::OkStatus();
  }

  bool has_into() const override { return attrs_.dst_part.has_into; }

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

  Status MakePlan(OpKernelContext* ctx, EltwiseOpPlan* plan) const {
    const PartialTensorShape src = InputShape(ctx, kSrc);
    PartialTensorShape dst;
    TF_RETURN_IF_ERROR(EltwiseShape(attrs_, src, InputShapes(ctx, kFirstArg), &dst));
    TF_RETURN_IF_ERROR(ToFullShape(dst, &plan->dst_shape));
    Plane plane;
    TF_RETURN_IF_ERROR(ReadPlane("src", src, attrs_.layout,
                                 attrs_.src_part.tensor_channels(attrs_.channels), &plane));
    EltwiseDesc desc;
    desc.post_ops = attrs_.post_ops.chain;
    TF_RETURN_IF_ERROR(MakeView(attrs_.layout, attrs_.channels, attrs_.src_part, plane, &desc.src));
    TF_RETURN_IF_ERROR(MakeView(attrs_.layout, attrs_.channels, attrs_.dst_part, plane, &desc.dst));
    return FromCore(MakeEltwisePlan(desc, ActiveIsa(), &plan->eltwise));
  }

  std::string Describe(OpKernelContext*, const EltwiseLaunch& launch,
                       bool in_place) const override {
    const PostOpChain& chain = launch.plan->eltwise.desc.post_ops;
    return absl::StrCat("eltwise ", IsaName(ActiveIsa()), " ", launch.dst_shape().DebugString(),
                        SumNote(chain, in_place && !has_into()),
                        PartNote(attrs_.src_part, attrs_.dst_part, in_place), " \"",
                        chain.ToString(), "\"");
  }

  EltwiseAttrs attrs_;
  PlanCache<EltwiseOpPlan> plans_;
};

REGISTER_KERNEL_BUILDER(
    Name("BlockdnnEltwise").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"), EltwiseOp);

}  // namespace
}  // namespace bd
