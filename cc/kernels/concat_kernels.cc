// BlockdnnConcat.
#include <memory>

#include "cc/base/verbose.h"
#include "cc/core/concat/concat.h"
#include "cc/kernels/op_utils.h"
#include "cc/kernels/plan_cache.h"
#include "cc/ops/attrs.h"

namespace bd {
namespace {

struct ConcatOpPlan {
  ConcatPlan concat;
  TensorShape dst_shape;
};

class ConcatOp : public PoolOpKernel {
 public:
  explicit ConcatOp(OpKernelConstruction* ctx) : PoolOpKernel(ctx) {
    OP_REQUIRES_OK(ctx, attrs_.Read(ctx));
  }

 protected:
  void Execute(OpKernelContext* ctx) override {
    std::shared_ptr<const ConcatOpPlan> plan;
    OP_REQUIRES_OK(ctx, plans_.Get(
                            ctx, [&](ConcatOpPlan* made) { return MakePlan(ctx, made); }, &plan));
    Tensor* dst;
    int reused;
    OP_REQUIRES_OK(ctx, AllocateDst(ctx, attrs_.dst_part, {}, plan->dst_shape, &dst, &reused));
    if (dst->NumElements() == 0) return;
    const ArgPointers srcs(ctx, 0);
    float* to = static_cast<float*>(dst->data()) + attrs_.dst_part.offset(plan->concat.desc.pixels);
    RunLogged([&] { return Describe(*plan) + PartNote({}, attrs_.dst_part, reused >= 0); },
              [&] { RunConcat(plan->concat, srcs.data(), to, pool()); });
  }

  BlockedTensors Blocked(OpKernelContext*) const override {
    BlockedTensors blocked;
    for (size_t i = 0; i < attrs_.channels.size(); ++i) {
      blocked.Input(i, Layout::nChw16c, {attrs_.channels[i]});
    }
    return blocked.Output(0, attrs_.dst_part, Layout::nChw16c, attrs_.dst_channels());
  }

 private:
  Status MakePlan(OpKernelContext* ctx, ConcatOpPlan* plan) const {
    PartialTensorShape dst;
    TF_RETURN_IF_ERROR(ConcatShape(attrs_, InputShapes(ctx, 0), &dst));
    TF_RETURN_IF_ERROR(ToFullShape(dst, &plan->dst_shape));
    ConcatDesc desc;
    desc.n = dst.dim_size(0);
    desc.pixels = dst.dim_size(2) * dst.dim_size(3);
    desc.channels = attrs_.channels;
    desc.dst_image_blocks = attrs_.dst_part.image_blocks();
    return FromCore(MakeConcatPlan(desc, ActiveIsa(), &plan->concat));
  }

  static std::string Describe(const ConcatOpPlan& plan) {
    return absl::StrCat("concat ", IsaName(ActiveIsa()), " ", plan.concat.desc.channels.size(),
                        " values->", plan.dst_shape.DebugString());
  }

  ConcatAttrs attrs_;
  PlanCache<ConcatOpPlan> plans_;
};

REGISTER_KERNEL_BUILDER(
    Name("BlockdnnConcat").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"), ConcatOp);

}  // namespace
}  // namespace bd
