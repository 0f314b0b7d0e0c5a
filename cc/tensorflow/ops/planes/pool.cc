// BlockdnnPool, its gradient, and BlockdnnGlobalPool.
#include "cc/core/pool/pool.h"

#include "cc/tensorflow/attrs/attrs.h"
#include "cc/tensorflow/ops/op.h"

namespace bd {
namespace {

constexpr int kSrc = 0;

void VisitKind(AttrVisitor& v, PoolKind* kind) {
  v.Choice("kind", kind, {{"max", PoolKind::kMax}, {"avg", PoolKind::kAvg}});
}

// What pooling and its gradient have in common; the gradient has no parts.
struct WindowedPool : ActivationOp {  // of the gradient float32
  PoolKind kind = PoolKind::kMax;
  WindowAttrs window;

  void Visit(AttrVisitor& v) {
    VisitKind(v, &kind);
    v("channels: int >= 1", &channels);
    v("ksize: list(int)", &window.kernel);
    window.Visit(v, /*has_dilations=*/false);
  }

  Status Check() {
    TF_RETURN_IF_ERROR(window.Check());
    for (const Window1d& w : {window.h, window.w}) {
      if (std::max(w.pad_before, w.pad_after) < w.kernel) continue;
      return Invalid("explicit_paddings ", w.pad_before, " and ", w.pad_after,
                     " must be smaller than ksize ", w.kernel,
                     ": a window would see nothing but padding");
    }
    return absl::OkStatus();
  }

  // The planes of src and dst, as far as they are known.
  Status Planes(const PartialTensorShape& src, Windows* w, Plane* src_plane,
                Plane* dst_plane) const {
    TF_RETURN_IF_ERROR(SrcPlane(src, src_plane));
    TF_RETURN_IF_ERROR(ResolveWindows(window, *src_plane, &w->h, &w->w));
    *dst_plane = {src_plane->n, w->h.out, w->w.out};
    return absl::OkStatus();
  }

  Status PooledShape(const ShapeList& in, const PartialTensorShape& src, ShapeList* dst) const {
    Windows windows;
    Plane src_plane, dst_plane;
    TF_RETURN_IF_ERROR(Planes(src, &windows, &src_plane, &dst_plane));
    return DstShape(dst_plane, in, dst);
  }

  Status Describe(const PartialTensorShape& src, PoolDesc* desc) const {
    Plane src_plane, dst_plane;
    TF_RETURN_IF_ERROR(Planes(src, &desc->windows, &src_plane, &dst_plane));
    desc->kind = kind;
    return SetTensors(src_plane, dst_plane, desc);
  }
};

struct Pool : WindowedPool {
  using Plan = PoolPlan;

  static OpSignature Signature() {
    return {"BlockdnnPool", {"src: T", kTypedIntoInput}, {"dst: dst_type"}, "See bd.ops.pool."};
  }

  void Visit(AttrVisitor& v) {
    types.Visit(v);
    WindowedPool::Visit(v);
    VisitParts(v);
  }
  Status Check() {
    TF_RETURN_IF_ERROR(WindowedPool::Check());
    return ActivationOp::Check();
  }

  Status Shapes(const ShapeList& in, ShapeList* dst) const {
    return PooledShape(in, in[kSrc], dst);
  }
  Status MakePlan(const ShapeList& in, const PlanSite&, Plan* plan) const {
    PoolDesc desc;
    TF_RETURN_IF_ERROR(WindowedPool::Describe(in[kSrc], &desc));
    return FromCore(MakePoolPlan(desc, ActiveIsa(), plan));
  }
  void Run(const Plan& plan, const LaunchMemory& m, ThreadPool& pool) const {
    RunPool(plan, Src(plan, m), Dst(plan, m), pool);
  }
};

struct PoolGrad : WindowedPool {
  using Plan = PoolGradPlan;
  enum { kDdst, kSrc, kDst };
  static constexpr int kLike = kSrc;

  static OpSignature Signature() {
    return {"BlockdnnPoolGrad",
            {"ddst: T", "src: T", "dst: T"},
            {"dsrc: T"},
            "The gradient of BlockdnnPool by its source. Of several elements of a window that are "
            "its maximum, the first takes all."};
  }

  void Visit(AttrVisitor& v) {
    v("T: {float} = DT_FLOAT", &dtype);
    WindowedPool::Visit(v);
  }

  Status Shapes(const ShapeList& in, ShapeList* dst) const {
    dst->push_back(in[kSrc]);
    ShapeList pooled;
    TF_RETURN_IF_ERROR(PooledShape(in, in[kSrc], &pooled));
    for (int i : {kDdst, kDst}) {
      if (in[i].IsCompatibleWith(pooled[0])) continue;
      return Invalid(i == kDdst ? "ddst" : "dst", " must have the shape of the result, ",
                     pooled[0].DebugString(), "; got ", in[i].DebugString());
    }
    return absl::OkStatus();
  }
  Status MakePlan(const ShapeList& in, const PlanSite&, Plan* plan) const {
    PoolDesc desc;
    TF_RETURN_IF_ERROR(WindowedPool::Describe(in[kSrc], &desc));
    return FromCore(MakePoolGradPlan(desc, ActiveIsa(), plan));
  }
  void Run(const Plan& plan, const LaunchMemory& m, ThreadPool& pool) const {
    RunPoolGrad(plan, {m.in<float>(kSrc), m.in<float>(kDst), m.in<float>(kDdst), m.out<float>()},
                pool);
  }

  BlockedTensors Blocked(const ShapeList&) const {
    BlockedTensors blocked;
    for (int i : {kDdst, kSrc, kDst}) blocked.Input(i, Layout::nChw16c, {channels});
    return blocked.Output(0, Layout::nChw16c, {channels});
  }
};

struct GlobalPool : ActivationOp {
  using Plan = PoolPlan;

  PoolKind kind = PoolKind::kMax;
  Layout dst_layout = Layout::nhwc;

  static OpSignature Signature() {
    return {"BlockdnnGlobalPool", {"src: T"}, {"dst: dst_type"}, "See bd.ops.global_pool."};
  }

  void Visit(AttrVisitor& v) {
    types.Visit(v);
    VisitKind(v, &kind);
    v("channels: int >= 1", &channels);
    v.Choice("dst_layout", &dst_layout, {Layout::nc, Layout::nhwc, Layout::nChw16c});
  }

  Status Shapes(const ShapeList& in, ShapeList* dst) const {
    Plane plane;
    TF_RETURN_IF_ERROR(SrcPlane(in[kSrc], &plane));
    return SampleChannelShape(dst_layout, plane.n, channels, &dst->emplace_back());
  }
  Status MakePlan(const ShapeList& in, const PlanSite&, Plan* plan) const {
    Plane plane;
    TF_RETURN_IF_ERROR(SrcPlane(in[kSrc], &plane));
    TensorView src;
    TF_RETURN_IF_ERROR(MakeView(types.src, layout, channels, {}, plane, &src));
    PoolDesc desc = PoolDesc::Global(kind, src, OfOnePixel(dst_layout));
    desc.dst = TensorView(types.dst, desc.dst.layout(), desc.dst.dims());
    desc.src_quantization = types.of_src();
    desc.dst_quantization = types.of_dst();
    return FromCore(MakePoolPlan(desc, ActiveIsa(), plan));
  }
  void Run(const Plan& plan, const LaunchMemory& m, ThreadPool& pool) const {
    RunPool(plan, m.in<void>(kSrc), m.out<void>(), pool);
  }

  BlockedTensors Blocked(const ShapeList&) const {
    return BlockedTensors()
        .Input(kSrc, src_part, layout, channels, types.of_src())
        .Output(0, dst_part, dst_layout, channels, types.of_dst());
  }
};

const OpRegistration<Pool> pool;
const OpRegistration<PoolGrad> pool_grad;
const OpRegistration<GlobalPool> global_pool;

}  // namespace
}  // namespace bd
