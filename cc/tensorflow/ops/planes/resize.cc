// BlockdnnResize.
#include "cc/core/resize/resize.h"

#include "cc/tensorflow/attrs/attrs.h"
#include "cc/tensorflow/ops/op.h"

namespace bd {
namespace {

constexpr const char* kCoordinates[] = {"half_pixel", "asymmetric", "align_corners"};

struct Resize : OpDefaults {
  using Plan = ResizePlan;

  ResizeKind kind = ResizeKind::kNearest;
  ResizeCoordinates coordinates = ResizeCoordinates::kHalfPixel;
  TypesAttrs types;
  int64_t channels = 0;
  std::vector<int64_t> scales, size;  // [height, width], one of the two
  ChannelPart src_part;
  DstPart dst_part;

  static OpSignature Signature() {
    return {"BlockdnnResize", {"src: T", kTypedIntoInput}, {"dst: dst_type"}, "See bd.ops.resize."};
  }

  void Visit(AttrVisitor& v) {
    types.Visit(v);
    v.Choice("kind", &kind,
             {{"nearest", ResizeKind::kNearest}, {"bilinear", ResizeKind::kBilinear}});
    v.Choice("coordinates", &coordinates,
             {{kCoordinates[0], ResizeCoordinates::kHalfPixel},
              {kCoordinates[1], ResizeCoordinates::kAsymmetric},
              {kCoordinates[2], ResizeCoordinates::kAlignCorners}},
             kCoordinates[0]);
    v("channels: int >= 1", &channels);
    v("scales: list(int) = []", &scales);
    v("size: list(int) = []", &size);
    src_part.Visit("src_part", v);
    dst_part.Visit(v);
    dst_part.VisitIntoType(v);
  }
  Status Check() {
    TF_RETURN_IF_ERROR(types.Check());
    TF_RETURN_IF_ERROR(dst_part.CheckIntoType(types.dst));
    TF_RETURN_IF_ERROR(src_part.Check("src_part", Layout::nChw16c, channels));
    TF_RETURN_IF_ERROR(dst_part.Check(Layout::nChw16c, channels));
    const auto valid = [](int64_t side) { return side >= 1 && side <= kMostResizedSide; };
    const std::vector<int64_t>& given = size.empty() ? scales : size;
    if (scales.empty() != size.empty() && given.size() == 2 && valid(given[0]) && valid(given[1])) {
      return absl::OkStatus();
    }
    return Invalid("either scales or size must be [height, width], each from 1 to ",
                   kMostResizedSide, ", and the other nothing");
  }

  Status Planes(const PartialTensorShape& src, Plane* src_plane, Plane* dst_plane) const {
    TF_RETURN_IF_ERROR(
        ReadPlane("src", src, Layout::nChw16c, src_part.tensor_channels(channels), src_plane));
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
    TF_RETURN_IF_ERROR(MakeShape(Layout::nChw16c, dst_part.tensor_channels(channels), dst_plane,
                                 &dst->emplace_back()));
    return dst_part.CheckInto(in, dst->front());
  }
  Status MakePlan(const ShapeList& in, const PlanSite&, Plan* plan) const {
    Plane src_plane, dst_plane;
    TF_RETURN_IF_ERROR(Planes(in[0], &src_plane, &dst_plane));
    ResizeDesc desc;
    desc.kind = kind;
    desc.coordinates = coordinates;
    desc.src_quantization = types.of_src();
    desc.dst_quantization = types.of_dst();
    TF_RETURN_IF_ERROR(
        MakeView(types.src, Layout::nChw16c, channels, src_part, src_plane, &desc.src));
    TF_RETURN_IF_ERROR(
        MakeView(types.dst, Layout::nChw16c, channels, dst_part, dst_plane, &desc.dst));
    return FromCore(MakeResizePlan(desc, ActiveIsa(), plan));
  }
  void Run(const Plan& plan, const LaunchMemory& m, ThreadPool& pool) const {
    RunResize(plan, m.in<void>(0, src_part.offset(plan.desc.src)),
              m.out<void>(0, dst_part.offset(plan.desc.dst)), pool);
  }

  bool has_into() const { return dst_part.has_into(); }
  BlockedTensors Blocked(const ShapeList&) const {
    return BlockedTensors()
        .Input(0, src_part, Layout::nChw16c, channels, types.of_src())
        .Output(0, dst_part, Layout::nChw16c, channels, types.of_dst());
  }
  std::string Describe(const Plan&, const Call& call) const {
    return absl::StrCat(
        "resize_", kind == ResizeKind::kNearest ? "nearest" : "bilinear", " ", IsaName(ActiveIsa()),
        " ", TypeNote(types.src), call.in(0), "->", TypeNote(types.dst), call.dst(), " ",
        kCoordinates[static_cast<int>(coordinates)], PartNote(src_part, dst_part, call.in_place));
  }
};

const OpRegistration<Resize> resize_registration;

}  // namespace
}  // namespace bd
