#include "cc/tensorflow/attrs/planes/pad_attrs.h"

namespace bd {
namespace {

constexpr int64_t kMost = int64_t{1} << 30;  // of pixels on one side

Status PadSide(int64_t size, int64_t before, int64_t after, int64_t* padded) {
  *padded = size == kUnknown ? kUnknown : size + before + after;
  if (size == kUnknown || *padded >= 0) return absl::OkStatus();
  return Invalid("paddings ", before, " and ", after, " cut off more than the ", size, " pixels");
}

}  // namespace

Status PadAttrs::Check() const {
  if (paddings.size() != 4) return Invalid("paddings must be [top, bottom, left, right]");
  for (int64_t side : paddings) {
    if (side < -kMost || side > kMost) return Invalid("paddings must be in [-2^30, 2^30]");
  }
  return absl::OkStatus();
}

Status PadPlanes(const PadAttrs& attrs, const PartialTensorShape& src, Plane* plane,
                 Plane* dst_plane) {
  TF_RETURN_IF_ERROR(ReadPlane("src", src, Layout::nChw16c, attrs.channels, plane));
  const std::vector<int64_t>& p = attrs.paddings;
  dst_plane->n = plane->n;
  TF_RETURN_IF_ERROR(PadSide(plane->h, p[0], p[1], &dst_plane->h));
  return PadSide(plane->w, p[2], p[3], &dst_plane->w);
}

}  // namespace bd
