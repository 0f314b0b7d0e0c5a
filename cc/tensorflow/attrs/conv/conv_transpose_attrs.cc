#include "cc/tensorflow/attrs/conv/conv_transpose_attrs.h"

#include <algorithm>

namespace bd {
Status ConvTransposeAttrs::Check() const {
  TF_RETURN_IF_ERROR(CheckWeightsShape(4, "[kh, kw, oc, ic]"));
  TF_RETURN_IF_ERROR(CheckList("strides", strides, 2, 1, "[height, width]"));
  TF_RETURN_IF_ERROR(CheckList("crops", crops, 4, INT32_MIN, "[top, bottom, left, right]"));
  if (crops[0] < 0 || crops[2] < 0) {
    return Invalid("crops ", crops[0], " and ", crops[2],
                   " must not be negative at the top and the left");
  }
  if (weights_shape[3] == channels) return absl::OkStatus();
  return Invalid("weights_shape has ", weights_shape[3],
                 " input channels, not channels = ", channels);
}

Status ConvTransposePlane(const ConvTransposeAttrs& attrs, const Plane& src, Plane* dst) {
  constexpr int64_t kMostPixels = int64_t{1} << 40;  // far above any memory, far below overflow
  const struct {
    const char* name;
    int axis;
    int64_t size;
    int64_t* out;
  } axes[] = {{"height", 0, src.h, &dst->h}, {"width", 1, src.w, &dst->w}};
  dst->n = src.n;
  for (const auto& a : axes) {
    *a.out = a.size;
    if (a.size == kUnknown || a.size == 0) continue;
    const int64_t stride = attrs.strides[a.axis];
    if (a.size > kMostPixels / stride) {
      return Invalid(a.name, ": ", a.size, " pixels at stride ", stride, " are too many");
    }
    const int64_t before = attrs.crops[2 * a.axis], after = attrs.crops[2 * a.axis + 1];
    *a.out = (a.size - 1) * stride + attrs.weights_shape[a.axis] - before - after;
    if (*a.out >= 0) continue;
    return Invalid(a.name, ": crops ", before, " and ", after, " exceed the ",
                   *a.out + before + after, " pixels of the result");
  }
  return absl::OkStatus();
}

Status ConvTransposeShape(const ConvTransposeAttrs& attrs, const PartialTensorShape& src,
                          const PartialTensorShape& weights,
                          const std::vector<PartialTensorShape>& args, PartialTensorShape* dst) {
  Plane plane, dst_plane;
  TF_RETURN_IF_ERROR(ReadPlane("src", src, Layout::nChw16c,
                               attrs.src_part.tensor_channels(attrs.channels), &plane));
  TF_RETURN_IF_ERROR(ConvTransposePlane(attrs, plane, &dst_plane));
  TF_RETURN_IF_ERROR(CheckWeightsSize(weights, attrs.weights_size(), attrs.weights_offset));
  OperandShapes shapes;
  TF_RETURN_IF_ERROR(MakeOperandShapes(attrs.dst_layout, attrs.oc(), dst_plane, &shapes));
  TF_RETURN_IF_ERROR(CheckOperands(attrs.post_ops, args, shapes));
  TF_RETURN_IF_ERROR(
      MakeShape(attrs.dst_layout, attrs.dst_part.tensor_channels(attrs.oc()), dst_plane, dst));
  return attrs.dst_part.CheckInto(args, *dst);
}

}  // namespace bd
