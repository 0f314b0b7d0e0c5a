// BlockdnnResize.
#include <memory>
#include <string>

#include "cc/core/resize/resize.h"
#include "cc/tensorflow/attrs/planes/resize_attrs.h"
#include "cc/tensorflow/op_base/launch.h"
#include "cc/tensorflow/op_base/plan_cache.h"

namespace bd {
namespace {

constexpr int kSrc = 0;

struct ResizeOpPlan {
  ResizePlan resize;
  TensorShape dst_shape;
};

struct ResizeLaunch {
  std::shared_ptr<const ResizeOpPlan> plan;
  int64_t src_offset = 0, dst_offset = 0;  // of parts

  const TensorShape& dst_shape(int = 0) const { return plan->dst_shape; }
  int64_t scratch_bytes() const { return 0; }
  absl::Span<const int> fixed_inputs() const { return {}; }
  bool lasts() const { return true; }
  void Run(const LaunchMemory& memory, ThreadPool& pool) const {
    RunResize(plan->resize, memory.inputs[kSrc] + src_offset, memory.dst() + dst_offset, pool);
  }
};

ResizeCoordinates CoordinatesOf(const std::string& name) {
  if (name == "half_pixel") return ResizeCoordinates::kHalfPixel;
  return name == "asymmetric" ? ResizeCoordinates::kAsymmetric : ResizeCoordinates::kAlignCorners;
}

class ResizeOp : public LaunchOpKernel<ResizeLaunch> {
 public:
  explicit ResizeOp(OpKernelConstruction* ctx) : LaunchOpKernel(ctx) {
    OP_REQUIRES_OK(ctx, attrs_.Read(ctx));
  }

 protected:
  Status Resolve(OpKernelContext* ctx, ResizeLaunch* launch) override {
    TF_RETURN_IF_ERROR(plans_.Get(
        ctx, [&](ResizeOpPlan* made) { return MakePlan(ctx, made); }, &launch->plan));
    const ResizeDesc& desc = launch->plan->resize.desc;
    launch->src_offset = attrs_.src_part.offset(desc.src.pixels());
    launch->dst_offset = attrs_.dst_part.offset(desc.dst.pixels());
    return absl::OkStatus();
  }

  BlockedTensors Blocked(OpKernelContext*) const override {
    return BlockedTensors()
        .Input(kSrc, attrs_.src_part, Layout::nChw16c, attrs_.channels)
        .Output(0, attrs_.dst_part, Layout::nChw16c, attrs_.channels);
  }

  bool has_into() const override { return attrs_.dst_part.has_into; }

 private:
  Status MakePlan(OpKernelContext* ctx, ResizeOpPlan* plan) const {
    PartialTensorShape dst;
    TF_RETURN_IF_ERROR(ResizeShape(attrs_, InputShapes(ctx, 0), &dst));
    TF_RETURN_IF_ERROR(ToFullShape(dst, &plan->dst_shape));
    Plane src_plane, dst_plane;
    TF_RETURN_IF_ERROR(ResizePlanes(attrs_, InputShape(ctx, kSrc), &src_plane, &dst_plane));
    ResizeDesc desc;
    desc.kind = attrs_.kind == "nearest" ? ResizeKind::kNearest : ResizeKind::kBilinear;
    desc.coordinates = CoordinatesOf(attrs_.coordinates);
    TF_RETURN_IF_ERROR(
        MakeView(Layout::nChw16c, attrs_.channels, attrs_.src_part, src_plane, &desc.src));
    TF_RETURN_IF_ERROR(
        MakeView(Layout::nChw16c, attrs_.channels, attrs_.dst_part, dst_plane, &desc.dst));
    return FromCore(MakeResizePlan(desc, ActiveIsa(), &plan->resize));
  }

  std::string Describe(OpKernelContext* ctx, const ResizeLaunch& launch,
                       bool in_place) const override {
    return absl::StrCat("resize_", attrs_.kind, " ", IsaName(ActiveIsa()), " ",
                        ctx->input(kSrc).shape().DebugString(), "->",
                        launch.dst_shape().DebugString(), " ", attrs_.coordinates,
                        PartNote(attrs_.src_part, attrs_.dst_part, in_place));
  }

  ResizeAttrs attrs_;
  PlanCache<ResizeOpPlan> plans_;
};

REGISTER_KERNEL_BUILDER(
    Name("BlockdnnResize").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"), ResizeOp);

}  // namespace
}  // namespace bd
