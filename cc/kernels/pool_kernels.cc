// BlockdnnPool and BlockdnnGlobalPool.
#include <memory>

#include "cc/base/verbose.h"
#include "cc/core/pool/pool.h"
#include "cc/kernels/op_utils.h"
#include "cc/kernels/plan_cache.h"
#include "cc/ops/attrs.h"

namespace bd {
namespace {

constexpr int kSrc = 0;

struct PoolOpPlan {
  PoolPlan pool;
  TensorShape dst_shape;
};

PoolKind KindOf(const std::string& name) { return name == "max" ? PoolKind::kMax : PoolKind::kAvg; }

// What the two ops share; they differ in how a plan comes about.
class PoolOpBase : public PoolOpKernel {
 public:
  using PoolOpKernel::PoolOpKernel;

 protected:
  virtual Status MakePlan(OpKernelContext* ctx, PoolOpPlan* plan) const = 0;

  void Execute(OpKernelContext* ctx) final {
    std::shared_ptr<const PoolOpPlan> plan;
    OP_REQUIRES_OK(ctx, plans_.Get(
                            ctx, [&](PoolOpPlan* made) { return MakePlan(ctx, made); }, &plan));
    Tensor* dst;
    OP_REQUIRES_OK(ctx, AllocateDst(ctx, plan->dst_shape, &dst));
    if (dst->NumElements() == 0) return;
    RunLogged([&] { return Describe(ctx, *plan); },
              [&] {
                RunPool(plan->pool, InputData(ctx, kSrc), static_cast<float*>(dst->data()), pool());
              });
  }

 private:
  static std::string Describe(OpKernelContext* ctx, const PoolOpPlan& plan) {
    const PoolDesc& d = plan.pool.desc;
    return absl::StrCat(d.kind == PoolKind::kMax ? "pool_max " : "pool_avg ", IsaName(ActiveIsa()),
                        " ", ctx->input(kSrc).shape().DebugString(), "->",
                        plan.dst_shape.DebugString(), " k", d.rows.kernel, "x", d.cols.kernel, " s",
                        d.rows.stride, "x", d.cols.stride);
  }

  PlanCache<PoolOpPlan> plans_;
};

class PoolOp : public PoolOpBase {
 public:
  explicit PoolOp(OpKernelConstruction* ctx) : PoolOpBase(ctx) {
    OP_REQUIRES_OK(ctx, attrs_.Read(ctx));
  }

 protected:
  Status MakePlan(OpKernelContext* ctx, PoolOpPlan* plan) const override {
    const PartialTensorShape src = InputShape(ctx, kSrc);
    PartialTensorShape dst;
    TF_RETURN_IF_ERROR(PoolShape(attrs_, src, &dst));
    TF_RETURN_IF_ERROR(ToFullShape(dst, &plan->dst_shape));
    Plane plane;
    TF_RETURN_IF_ERROR(ReadPlane("src", src, Layout::nChw16c, attrs_.channels, &plane));
    PoolDesc desc;
    desc.kind = KindOf(attrs_.kind);
    desc.n = plane.n;
    desc.channels = attrs_.channels;
    desc.padding = attrs_.window.padding;
    TF_RETURN_IF_ERROR(ResolveWindows(attrs_.window, plane, &desc.rows, &desc.cols));
    return FromCore(MakePoolPlan(desc, ActiveIsa(), &plan->pool));
  }

  BlockedTensors Blocked(OpKernelContext*) const override {
    return BlockedTensors()
        .Input(kSrc, Layout::nChw16c, {attrs_.channels})
        .Output(0, Layout::nChw16c, {attrs_.channels});
  }

 private:
  PoolAttrs attrs_;
};

class GlobalPoolOp : public PoolOpBase {
 public:
  explicit GlobalPoolOp(OpKernelConstruction* ctx) : PoolOpBase(ctx) {
    OP_REQUIRES_OK(ctx, attrs_.Read(ctx));
  }

 protected:
  Status MakePlan(OpKernelContext* ctx, PoolOpPlan* plan) const override {
    const PartialTensorShape src = InputShape(ctx, kSrc);
    PartialTensorShape dst;
    TF_RETURN_IF_ERROR(GlobalPoolShape(attrs_, src, &dst));
    TF_RETURN_IF_ERROR(ToFullShape(dst, &plan->dst_shape));
    Plane plane;
    TF_RETURN_IF_ERROR(ReadPlane("src", src, Layout::nChw16c, attrs_.channels, &plane));
    const PoolDesc desc =
        PoolDesc::Global(KindOf(attrs_.kind), plane.n, attrs_.channels, plane.h, plane.w,
                         /*plain_dst=*/attrs_.dst_layout == Layout::nhwc);
    return FromCore(MakePoolPlan(desc, ActiveIsa(), &plan->pool));
  }

  BlockedTensors Blocked(OpKernelContext*) const override {
    return BlockedTensors()
        .Input(kSrc, Layout::nChw16c, {attrs_.channels})
        .Output(0, attrs_.dst_layout, {attrs_.channels});
  }

 private:
  GlobalPoolAttrs attrs_;
};

REGISTER_KERNEL_BUILDER(
    Name("BlockdnnPool").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"), PoolOp);
REGISTER_KERNEL_BUILDER(
    Name("BlockdnnGlobalPool").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"),
    GlobalPoolOp);

}  // namespace
}  // namespace bd
