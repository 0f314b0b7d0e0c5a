#include "cc/tensorflow/attrs/planes/resize_attrs.h"

#include <algorithm>

namespace bd {
namespace {

// Of rows or columns of dst: a plan has an entry for each, and their coordinates are float, which
// is exact up to 2^24.
constexpr int64_t kMostSide = 1 << 24;

bool IsPair(const std::vector<int64_t>& list) {
  return list.size() == 2 &&
         std::all_of(list.begin(), list.end(), [](int64_t v) { return v >= 1 && v <= kMostSide; });
}

}  // namespace

Status ResizeAttrs::Check() const {
  if (scales.empty() != size.empty() && IsPair(size.empty() ? scales : size)) {
    return absl::OkStatus();
  }
  return Invalid("either scales or size must be [height, width], each from 1 to ", kMostSide,
                 ", and the other nothing");
}

Status ResizePlanes(const ResizeAttrs& attrs, const PartialTensorShape& src, Plane* src_plane,
                    Plane* dst_plane) {
  TF_RETURN_IF_ERROR(ReadPlane("src", src, Layout::nChw16c,
                               attrs.src_part.tensor_channels(attrs.channels), src_plane));
  *dst_plane = *src_plane;
  if (!attrs.size.empty()) {
    dst_plane->h = attrs.size[0];
    dst_plane->w = attrs.size[1];
    return absl::OkStatus();
  }
  const struct {
    int64_t* size;
    int64_t scale;
  } axes[] = {{&dst_plane->h, attrs.scales[0]}, {&dst_plane->w, attrs.scales[1]}};
  for (const auto& axis : axes) {
    if (*axis.size == kUnknown) continue;
    if (*axis.size > kMostSide / axis.scale) {
      return Invalid(*axis.size, " pixels times ", axis.scale, " are more than ", kMostSide);
    }
    *axis.size *= axis.scale;
  }
  return absl::OkStatus();
}

Status ResizeShape(const ResizeAttrs& attrs, const std::vector<PartialTensorShape>& inputs,
                   PartialTensorShape* dst) {
  Plane src_plane, dst_plane;
  TF_RETURN_IF_ERROR(ResizePlanes(attrs, inputs[0], &src_plane, &dst_plane));
  TF_RETURN_IF_ERROR(
      MakeShape(Layout::nChw16c, attrs.dst_part.tensor_channels(attrs.channels), dst_plane, dst));
  return attrs.dst_part.CheckInto(inputs, *dst);
}

}  // namespace bd
