#include "cc/tensorflow/attrs/pixels/layer_norm_attrs.h"

namespace bd {
namespace {

// `tensor` must hold `channels` elements from `offset` on; it may have any shape.
Status CheckRow(const char* name, const PartialTensorShape& tensor, int64_t channels,
                int64_t offset) {
  if (!tensor.IsFullyDefined() || tensor.num_elements() - offset >= channels) {
    return absl::OkStatus();
  }
  return Invalid(name, " has ", tensor.num_elements(), " elements, not the ", channels,
                 " of the channels from offset ", offset, " on");
}

}  // namespace

Status LayerNormAttrs::Check() const {
  if (!(epsilon >= 0.f)) return Invalid("epsilon must not be negative; got ", epsilon);
  if (offsets.size() != 2) return Invalid("offsets must be those of gamma and beta");
  for (int64_t offset : offsets) {
    if (offset < 0) return Invalid("offsets must not be negative; got ", offset);
  }
  return absl::OkStatus();
}

Status LayerNormPlane(const LayerNormAttrs& attrs, const PartialTensorShape& src,
                      const PartialTensorShape& gamma, const PartialTensorShape& beta,
                      Plane* plane) {
  TF_RETURN_IF_ERROR(CheckRow("gamma", gamma, attrs.channels, attrs.offsets[0]));
  TF_RETURN_IF_ERROR(CheckRow("beta", beta, attrs.channels, attrs.offsets[1]));
  if (attrs.layout != Layout::nhwc || src.dims() == 4) {
    return ReadPlane("src", src, attrs.layout, attrs.channels, plane);
  }
  // Whatever the axes of a plain src, its pixels are one row.
  PartialTensorShape dst;
  EltwiseAttrs same;
  same.channels = attrs.channels;
  TF_RETURN_IF_ERROR(EltwiseShape(same, src, {}, &dst));
  *plane = Plane();
  if (dst.IsFullyDefined()) *plane = {1, 1, dst.num_elements() / attrs.channels};
  return absl::OkStatus();
}

}  // namespace bd
