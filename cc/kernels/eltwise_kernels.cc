// BlockdnnEltwise.
#include <algorithm>
#include <memory>
#include <vector>

#include "cc/base/verbose.h"
#include "cc/core/eltwise/eltwise.h"
#include "cc/kernels/op_utils.h"
#include "cc/kernels/plan_cache.h"
#include "cc/ops/attrs.h"

namespace bd {
namespace {

constexpr int kSrc = 0, kFirstArg = 1;

struct EltwiseOpPlan {
  EltwisePlan eltwise;
  TensorShape dst_shape;
};

class EltwiseOp : public PoolOpKernel {
 public:
  explicit EltwiseOp(OpKernelConstruction* ctx) : PoolOpKernel(ctx) {
    OP_REQUIRES_OK(ctx, attrs_.Read(ctx));
    reusable_inputs_ = {kSrc};
    for (int arg = 0; arg < attrs_.post_ops.num_args; ++arg) {
      if (ReadOnlyInPlace(arg)) reusable_inputs_.push_back(kFirstArg + arg);
    }
  }

 protected:
  void Execute(OpKernelContext* ctx) override {
    std::shared_ptr<const EltwiseOpPlan> plan;
    OP_REQUIRES_OK(ctx, plans_.Get(
                            ctx, [&](EltwiseOpPlan* made) { return MakePlan(ctx, made); }, &plan));
    Tensor* dst;
    int reused;
    const ChannelPart& src_part = attrs_.src_part;
    const DstPart& dst_part = attrs_.dst_part;
    OP_REQUIRES_OK(ctx,
                   AllocateDst(ctx, dst_part, reusable_inputs_, plan->dst_shape, &dst, &reused));
    if (dst->NumElements() == 0) return;
    const ArgPointers args(ctx, kFirstArg);
    const int64_t pixels = plan->eltwise.desc.pixels;
    const float* from = InputData(ctx, kSrc) + src_part.offset(pixels);
    float* to = static_cast<float*>(dst->data()) + dst_part.offset(pixels);
    RunLogged([&] { return Describe(*plan, reused); },
              [&] { RunEltwise(plan->eltwise, from, args.data(), to, pool()); });
  }

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
    desc.n = plane.n;
    desc.channels = attrs_.channels;
    desc.pixels = plane.h * plane.w;
    desc.blocked = attrs_.layout == Layout::nChw16c;
    desc.post_ops = attrs_.post_ops.chain;
    desc.src_image_blocks = attrs_.src_part.image_blocks();
    desc.dst_image_blocks = attrs_.dst_part.image_blocks();
    return FromCore(MakeEltwisePlan(desc, ActiveIsa(), &plan->eltwise));
  }

  std::string Describe(const EltwiseOpPlan& plan, int reused) const {
    const PostOpChain& chain = plan.eltwise.desc.post_ops;
    return absl::StrCat("eltwise ", IsaName(ActiveIsa()), " ", plan.dst_shape.DebugString(),
                        SumNote(chain, reused >= 0 && !attrs_.dst_part.has_into),
                        PartNote(attrs_.src_part, attrs_.dst_part, reused >= 0), " \"",
                        chain.ToString(), "\"");
  }

  EltwiseAttrs attrs_;
  std::vector<int> reusable_inputs_;  // whose memory dst may take
  PlanCache<EltwiseOpPlan> plans_;
};

REGISTER_KERNEL_BUILDER(
    Name("BlockdnnEltwise").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"), EltwiseOp);

}  // namespace
}  // namespace bd
