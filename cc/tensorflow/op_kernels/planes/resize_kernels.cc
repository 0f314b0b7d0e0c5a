// BlockdnnResize.
#include <memory>
#include <string>

#include "cc/core/resize/resize.h"
#include "cc/tensorflow/attrs/planes/resize_attrs.h"
#include "cc/tensorflow/op_base/part_launch.h"

namespace bd {
namespace {

constexpr int kSrc = 0;

struct ResizeLaunch : PartLaunch<ResizePlan> {
  void Run(const LaunchMemory& memory, ThreadPool& pool) const {
    RunResize(plan->core, memory.inputs[kSrc] + src_offset, memory.dst() + dst_offset, pool);
  }
};

ResizeCoordinates CoordinatesOf(const std::string& name) {
  if (name == "half_pixel") return ResizeCoordinates::kHalfPixel;
  return name == "asymmetric" ? ResizeCoordinates::kAsymmetric : ResizeCoordinates::kAlignCorners;
}

class ResizeOp : public PartOpKernel<ResizeLaunch> {
 public:
  explicit ResizeOp(OpKernelConstruction* ctx) : PartOpKernel(ctx) {
    OP_REQUIRES_OK(ctx, attrs_.Read(ctx));
    src_part_ = attrs_.src_part;
    dst_part_ = attrs_.dst_part;
  }

 protected:
  BlockedTensors Blocked(OpKernelContext*) const override {
    return BlockedTensors()
        .Input(kSrc, attrs_.src_part, Layout::nChw16c, attrs_.channels)
        .Output(0, attrs_.dst_part, Layout::nChw16c, attrs_.channels);
  }

 private:
  Status MakePlan(OpKernelContext* ctx, Plan* plan) const override {
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
    return FromCore(MakeResizePlan(desc, ActiveIsa(), &plan->core));
  }

  std::string Describe(OpKernelContext* ctx, const ResizeLaunch& launch,
                       bool in_place) const override {
    return absl::StrCat("resize_", attrs_.kind, " ", IsaName(ActiveIsa()), " ",
                        ctx->input(kSrc).shape().DebugString(), "->",
                        launch.dst_shape().DebugString(), " ", attrs_.coordinates,
                        PartNote(attrs_.src_part, attrs_.dst_part, in_place));
  }

  ResizeAttrs attrs_;
};

REGISTER_KERNEL_BUILDER(
    Name("BlockdnnResize").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"), ResizeOp);

}  // namespace
}  // namespace bd
