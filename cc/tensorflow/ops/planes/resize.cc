// BlockdnnResize.
#include "cc/core/resize/resize.h"

#include "cc/tensorflow/attrs/attrs.h"
#include "cc/tensorflow/ops/op.h"

namespace bd {
namespace {

struct Resize : ActivationOp {
  using Plan = ResizePlan;

  ResizeKind kind = ResizeKind::kNearest;
  ResizeCoordinates coordinates = ResizeCoordinates::kHalfPixel;
  std::vector<int64_t> scales, size;  // [height, width], one of the two

  static OpSignature Signature() {
    return {"BlockdnnResize", {"src: T", kTypedIntoInput}, {"dst: dst_type"}, "See bd.ops.resize."};
  }

  void Visit(AttrVisitor& v) {
    types.Visit(v);
    v.Choice("kind", &kind,
             {{"nearest", ResizeKind::kNearest}, {"bilinear", ResizeKind::kBilinear}});
    v.Choice("coordinates", &coordinates,
             {{"half_pixel", ResizeCoordinates::kHalfPixel},
              {"asymmetric", ResizeCoordinates::kAsymmetric},
              {"align_corners", ResizeCoordinates::kAlignCorners}},
             "half_pixel");
    v("channels: int >= 1", &channels);
    v("scales: list(int) = []", &scales);
    v("size: list(int) = []", &size);
    VisitParts(v);
  }
  Status Check() {
    TF_RETURN_IF_ERROR(ActivationOp::Check());
    const auto valid = [](int64_t side) { return side >= 1 && side <= kMostResizedSide; };
    const std::vector<int64_t>& sides = size.empty() ? scales : size;
    if (scales.empty() != size.empty() && sides.size() == 2 && valid(sides[0]) && valid(sides[1])) {
      return absl::OkStatus();
    }
    return Invalid("either scales or size must be [height, width], each from 1 to ",
                   kMostResizedSide, ", and the other nothing");
  }

  Status Planes(const PartialTensorShape& src, Plane* src_plane, Plane* dst_plane) const {
    TF_RETURN_IF_ERROR(SrcPlane(src, src_plane));
    *dst_plane = *src_plane;
    for (int axis : {0, 1}) {
      int64_t& side = axis == 0 ? dst_plane->h : dst_plane->w;
      if (!size.empty()) {
        side = size[axis];
      } else if (side > kMostResizedSide / scales[axis]) {
        return Invalid(side, " pixels times ", scales[axis], " are more than ", kMostResizedSide);
      } else if (side != kUnknown) {
        side *= scales[axis];
      }
    }
    return absl::OkStatus();
  }
  Status Shapes(const ShapeList& in, ShapeList* dst) const {
    Plane src_plane, dst_plane;
    TF_RETURN_IF_ERROR(Planes(in[0], &src_plane, &dst_plane));
    return DstShape(dst_plane, in, dst);
  }
  Status MakePlan(const ShapeList& in, const PlanSite&, Plan* plan) const {
    Plane src_plane, dst_plane;
    TF_RETURN_IF_ERROR(Planes(in[0], &src_plane, &dst_plane));
    ResizeDesc desc;
    desc.kind = kind;
    desc.coordinates = coordinates;
    TF_RETURN_IF_ERROR(SetTensors(src_plane, dst_plane, &desc));
    return FromCore(MakeResizePlan(desc, ActiveIsa(), plan));
  }
  void Run(const Plan& plan, const LaunchMemory& m, ThreadPool& pool) const {
    RunResize(plan, Src(plan, m), Dst(plan, m), pool);
  }
};

const OpRegistration<Resize> resize_registration;

}  // namespace
}  // namespace bd
