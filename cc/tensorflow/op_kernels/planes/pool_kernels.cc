// BlockdnnPool, its gradient, and BlockdnnGlobalPool.
#include <memory>

#include "cc/core/pool/pool_grad.h"
#include "cc/tensorflow/attrs/attrs.h"
#include "cc/tensorflow/op_base/part_launch.h"

namespace bd {
namespace {

constexpr int kSrc = 0;

PoolKind KindOf(const std::string& name) { return name == "max" ? PoolKind::kMax : PoolKind::kAvg; }

Status DescOf(const PoolAttrs& attrs, const PartialTensorShape& src, PoolDesc* desc) {
  Plane plane;
  TF_RETURN_IF_ERROR(ReadPlane("src", src, Layout::nChw16c,
                               attrs.src_part.tensor_channels(attrs.channels), &plane));
  desc->kind = KindOf(attrs.kind);
  Windows& windows = desc->windows;
  TF_RETURN_IF_ERROR(ResolveWindows(attrs.window, plane, &windows.h, &windows.w));
  const Plane dst_plane = {plane.n, windows.h.out, windows.w.out};
  TF_RETURN_IF_ERROR(MakeView(Layout::nChw16c, attrs.channels, attrs.src_part, plane, &desc->src));
  return MakeView(Layout::nChw16c, attrs.channels, attrs.dst_part, dst_plane, &desc->dst);
}

struct PoolLaunch : PartLaunch<PoolPlan> {
  void Run(const LaunchMemory& memory, ThreadPool& pool) const {
    RunPool(plan->core, memory.inputs[kSrc] + src_offset, memory.dst() + dst_offset, pool);
  }
};

// What the two ops share; they differ in how a plan comes about.
class PoolOpBase : public PartOpKernel<PoolLaunch> {
 public:
  using PartOpKernel::PartOpKernel;

 private:
  std::string Describe(OpKernelContext* ctx, const PoolLaunch& launch, bool in_place) const final {
    const PoolDesc& d = launch.plan->core.desc;
    return absl::StrCat(d.kind == PoolKind::kMax ? "pool_max " : "pool_avg ", IsaName(ActiveIsa()),
                        " ", ctx->input(kSrc).shape().DebugString(), "->",
                        launch.dst_shape().DebugString(), " k", d.windows.h.kernel, "x",
                        d.windows.w.kernel, " s", d.windows.h.stride, "x", d.windows.w.stride,
                        PartNote(src_part_, dst_part_, in_place));
  }
};

class PoolOp : public PoolOpBase {
 public:
  explicit PoolOp(OpKernelConstruction* ctx) : PoolOpBase(ctx) {
    OP_REQUIRES_OK(ctx, attrs_.Read(ctx));
    src_part_ = attrs_.src_part;
    dst_part_ = attrs_.dst_part;
  }

 protected:
  Status MakePlan(OpKernelContext* ctx, Plan* plan) const override {
    PartialTensorShape dst;
    TF_RETURN_IF_ERROR(PoolShape(attrs_, InputShapes(ctx, 0), &dst));
    TF_RETURN_IF_ERROR(ToFullShape(dst, &plan->dst_shape));
    PoolDesc desc;
    TF_RETURN_IF_ERROR(DescOf(attrs_, InputShape(ctx, kSrc), &desc));
    return FromCore(MakePoolPlan(desc, ActiveIsa(), &plan->core));
  }

  BlockedTensors Blocked(OpKernelContext*) const override {
    return BlockedTensors()
        .Input(kSrc, attrs_.src_part, Layout::nChw16c, attrs_.channels)
        .Output(0, attrs_.dst_part, Layout::nChw16c, attrs_.channels);
  }

 private:
  PoolAttrs attrs_;
};

struct PoolGradLaunch : LaunchDefaults {
  PoolGradPlan plan;
  TensorShape shape;

  const TensorShape& dst_shape(int = 0) const { return shape; }
  void Run(const LaunchMemory& memory, ThreadPool& pool) const {
    RunPoolGrad(plan, {memory.inputs[1], memory.inputs[2], memory.inputs[0], memory.dst()}, pool);
  }
};

class PoolGradOp : public LaunchOpKernel<PoolGradLaunch> {
 public:
  explicit PoolGradOp(OpKernelConstruction* ctx) : LaunchOpKernel(ctx) {
    OP_REQUIRES_OK(ctx, attrs_.ReadWithoutParts(ctx));
  }

 protected:
  // A plan takes less than to look for one.
  Status Resolve(OpKernelContext* ctx, PoolGradLaunch* launch) override {
    TF_RETURN_IF_ERROR(CheckPoolGradShapes(attrs_, InputShapes(ctx, 0)));
    launch->shape = ctx->input(1).shape();
    PoolDesc desc;
    TF_RETURN_IF_ERROR(DescOf(attrs_, InputShape(ctx, 1), &desc));
    return FromCore(MakePoolGradPlan(desc, ActiveIsa(), &launch->plan));
  }

  BlockedTensors Blocked(OpKernelContext*) const override {
    BlockedTensors blocked;
    for (int i = 0; i < 3; ++i) blocked.Input(i, Layout::nChw16c, {attrs_.channels});
    return blocked.Output(0, Layout::nChw16c, {attrs_.channels});
  }

 private:
  std::string Describe(OpKernelContext* ctx, const PoolGradLaunch& launch, bool) const override {
    const Windows& w = launch.plan.desc.windows;
    return absl::StrCat("pool_grad_", attrs_.kind, " ", IsaName(ActiveIsa()), " ",
                        ctx->input(0).shape().DebugString(), "->", launch.shape.DebugString(), " k",
                        w.h.kernel, "x", w.w.kernel, " s", w.h.stride, "x", w.w.stride);
  }

  PoolAttrs attrs_;
};

class GlobalPoolOp : public PoolOpBase {
 public:
  explicit GlobalPoolOp(OpKernelConstruction* ctx) : PoolOpBase(ctx) {
    OP_REQUIRES_OK(ctx, attrs_.Read(ctx));
  }

 protected:
  Status MakePlan(OpKernelContext* ctx, Plan* plan) const override {
    const PartialTensorShape src = InputShape(ctx, kSrc);
    PartialTensorShape dst;
    TF_RETURN_IF_ERROR(GlobalPoolShape(attrs_, src, &dst));
    TF_RETURN_IF_ERROR(ToFullShape(dst, &plan->dst_shape));
    Plane plane;
    TF_RETURN_IF_ERROR(ReadPlane("src", src, Layout::nChw16c, attrs_.channels, &plane));
    TensorView view;
    TF_RETURN_IF_ERROR(MakeView(Layout::nChw16c, attrs_.channels, {}, plane, &view));
    const PoolDesc desc = PoolDesc::Global(KindOf(attrs_.kind), view, attrs_.dst_layout);
    return FromCore(MakePoolPlan(desc, ActiveIsa(), &plan->core));
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
    Name("BlockdnnPoolGrad").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"), PoolGradOp);
REGISTER_KERNEL_BUILDER(
    Name("BlockdnnGlobalPool").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"),
    GlobalPoolOp);

}  // namespace
}  // namespace bd
