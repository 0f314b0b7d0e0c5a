// BlockdnnReorder.
#include <memory>

#include "cc/base/verbose.h"
#include "cc/core/reorder/reorder.h"
#include "cc/kernels/op_utils.h"
#include "cc/kernels/plan_cache.h"
#include "cc/ops/attrs.h"

namespace bd {
namespace {

constexpr int kSrc = 0;

struct ReorderOpPlan {
  ReorderPlan reorder;
  TensorShape dst_shape;
};

class ReorderOp : public PoolOpKernel {
 public:
  explicit ReorderOp(OpKernelConstruction* ctx) : PoolOpKernel(ctx) {
    OP_REQUIRES_OK(ctx, attrs_.Read(ctx));
  }

  void Compute(OpKernelContext* ctx) override {
    std::shared_ptr<const ReorderOpPlan> plan;
    OP_REQUIRES_OK(ctx, plans_.Get(
                            ctx, [&](ReorderOpPlan* made) { return MakePlan(ctx, made); }, &plan));
    Tensor* dst;
    OP_REQUIRES_OK(ctx, AllocateDst(ctx, plan->dst_shape, &dst));
    if (dst->NumElements() == 0) return;
    RunLogged([&] { return Describe(ctx, *plan); },
              [&] {
                RunReorder(plan->reorder, InputData(ctx, kSrc), static_cast<float*>(dst->data()),
                           pool());
              });
  }

 private:
  Status MakePlan(OpKernelContext* ctx, ReorderOpPlan* plan) const {
    const PartialTensorShape src = InputShape(ctx, kSrc);
    PartialTensorShape dst;
    TF_RETURN_IF_ERROR(ReorderShape(attrs_, src, &dst));
    TF_RETURN_IF_ERROR(ToFullShape(dst, &plan->dst_shape));
    Plane plane;
    TF_RETURN_IF_ERROR(ReadPlane("src", src, attrs_.src_layout, attrs_.channels, &plane));
    ReorderDesc desc;
    desc.src_layout = attrs_.src_layout;
    desc.dst_layout = attrs_.dst_layout;
    desc.n = plane.n;
    desc.channels = attrs_.channels;
    desc.h = plane.h;
    desc.w = plane.w;
    return FromCore(MakeReorderPlan(desc, ActiveIsa(), &plan->reorder));
  }

  static std::string Describe(OpKernelContext* ctx, const ReorderOpPlan& plan) {
    const ReorderDesc& d = plan.reorder.desc;
    return absl::StrCat("reorder ", IsaName(ActiveIsa()), " ", LayoutName(d.src_layout),
                        ctx->input(kSrc).shape().DebugString(), "->", LayoutName(d.dst_layout),
                        plan.dst_shape.DebugString());
  }

  ReorderAttrs attrs_;
  PlanCache<ReorderOpPlan> plans_;
};

REGISTER_KERNEL_BUILDER(
    Name("BlockdnnReorder").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"), ReorderOp);

}  // namespace
}  // namespace bd
