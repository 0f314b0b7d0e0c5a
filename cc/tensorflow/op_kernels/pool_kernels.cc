// BlockdnnPool and BlockdnnGlobalPool.
#include <memory>

#include "cc/core/pool/pool.h"
#include "cc/tensorflow/attrs/attrs.h"
#include "cc/tensorflow/op_base/launch.h"
#include "cc/tensorflow/op_base/plan_cache.h"

namespace bd {
namespace {

constexpr int kSrc = 0;

struct PoolOpPlan {
  PoolPlan pool;
  TensorShape dst_shape;
};

PoolKind KindOf(const std::string& name) { return name == "max" ? PoolKind::kMax : PoolKind::kAvg; }

struct PoolLaunch {
  std::shared_ptr<const PoolOpPlan> plan;
  int64_t src_offset = 0, dst_offset = 0;  // of parts

  const TensorShape& dst_shape(int = 0) const { return plan->dst_shape; }
  int64_t scratch_bytes() const { return 0; }
  absl::Span<const int> fixed_inputs() const { return {}; }
  bool lasts() const { return true; }
  void Run(const LaunchMemory& memory, ThreadPool& pool) const {
    RunPool(plan->pool, memory.inputs[kSrc] + src_offset, memory.dst() + dst_offset, pool);
  }
};

// What the two ops share; they differ in how a plan comes about.
class PoolOpBase : public LaunchOpKernel<PoolLaunch> {
 public:
  using LaunchOpKernel::LaunchOpKernel;

 protected:
  virtual Status MakePlan(OpKernelContext* ctx, PoolOpPlan* plan) const = 0;

  ChannelPart src_part_;
  DstPart dst_part_;

  Status Resolve(OpKernelContext* ctx, PoolLaunch* launch) final {
    TF_RETURN_IF_ERROR(plans_.Get(
        ctx, [&](PoolOpPlan* made) { return MakePlan(ctx, made); }, &launch->plan));
    const PoolDesc& desc = launch->plan->pool.desc;
    launch->src_offset = src_part_.offset(desc.src.pixels());
    launch->dst_offset = dst_part_.offset(desc.dst.pixels());
    return absl::OkStatus();
  }

  bool has_into() const final { return dst_part_.has_into; }

 private:
  std::string Describe(OpKernelContext* ctx, const PoolLaunch& launch, bool in_place) const final {
    const PoolDesc& d = launch.plan->pool.desc;
    return absl::StrCat(d.kind == PoolKind::kMax ? "pool_max " : "pool_avg ", IsaName(ActiveIsa()),
                        " ", ctx->input(kSrc).shape().DebugString(), "->",
                        launch.dst_shape().DebugString(), " k", d.windows.h.kernel, "x",
                        d.windows.w.kernel, " s", d.windows.h.stride, "x", d.windows.w.stride,
                        PartNote(src_part_, dst_part_, in_place));
  }

  PlanCache<PoolOpPlan> plans_;
};

class PoolOp : public PoolOpBase {
 public:
  explicit PoolOp(OpKernelConstruction* ctx) : PoolOpBase(ctx) {
    OP_REQUIRES_OK(ctx, attrs_.Read(ctx));
    src_part_ = attrs_.src_part;
    dst_part_ = attrs_.dst_part;
  }

 protected:
  Status MakePlan(OpKernelContext* ctx, PoolOpPlan* plan) const override {
    PartialTensorShape dst;
    TF_RETURN_IF_ERROR(PoolShape(attrs_, InputShapes(ctx, 0), &dst));
    TF_RETURN_IF_ERROR(ToFullShape(dst, &plan->dst_shape));
    Plane plane;
    TF_RETURN_IF_ERROR(ReadPlane("src", InputShape(ctx, kSrc), Layout::nChw16c,
                                 attrs_.src_part.tensor_channels(attrs_.channels), &plane));
    PoolDesc desc;
    desc.kind = KindOf(attrs_.kind);
    Windows& windows = desc.windows;
    TF_RETURN_IF_ERROR(ResolveWindows(attrs_.window, plane, &windows.h, &windows.w));
    const Plane dst_plane = {plane.n, windows.h.out, windows.w.out};
    TF_RETURN_IF_ERROR(
        MakeView(Layout::nChw16c, attrs_.channels, attrs_.src_part, plane, &desc.src));
    TF_RETURN_IF_ERROR(
        MakeView(Layout::nChw16c, attrs_.channels, attrs_.dst_part, dst_plane, &desc.dst));
    return FromCore(MakePoolPlan(desc, ActiveIsa(), &plan->pool));
  }

  BlockedTensors Blocked(OpKernelContext*) const override {
    return BlockedTensors()
        .Input(kSrc, attrs_.src_part, Layout::nChw16c, attrs_.channels)
        .Output(0, attrs_.dst_part, Layout::nChw16c, attrs_.channels);
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
    TensorView view;
    TF_RETURN_IF_ERROR(MakeView(Layout::nChw16c, attrs_.channels, {}, plane, &view));
    const PoolDesc desc = PoolDesc::Global(KindOf(attrs_.kind), view, attrs_.dst_layout);
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
