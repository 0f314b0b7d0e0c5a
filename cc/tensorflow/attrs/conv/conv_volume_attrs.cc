#include "cc/tensorflow/attrs/conv/conv_volume_attrs.h"

namespace bd {
Status ConvVolumeAttrs::Check() const {
  TF_RETURN_IF_ERROR(CheckWeightsShape(5, "[kd, kh, kw, ic, oc]"));
  TF_RETURN_IF_ERROR(CheckList("strides", strides, 3, 1, "[depth, height, width]"));
  if (weights_shape[3] == channels) return absl::OkStatus();
  return Invalid("weights_shape has ", weights_shape[3],
                 " input channels, not channels = ", channels);
}

Status ResolveVolume(const ConvVolumeAttrs& attrs, const PartialTensorShape& src,
                     VolumeWindows* v) {
  TF_RETURN_IF_ERROR(ReadPlane("src", src, attrs.src_layout, attrs.channels, &v->src));
  const struct {
    const char* name;
    int axis;
    int64_t size;
    Window1d* window;
  } axes[] = {{"depth", 0, attrs.depth, &v->d},
              {"height", 1, v->src.h, &v->h},
              {"width", 2, v->src.w, &v->w}};
  for (const auto& a : axes) {
    *a.window = Window1d();
    a.window->kernel = attrs.weights_shape[a.axis];
    a.window->stride = attrs.strides[a.axis];
    a.window->size = a.size;
    a.window->out = kUnknown;
    if (a.size == kUnknown) continue;
    const std::string error = ResolveWindow(attrs.padding, a.window);
    if (!error.empty()) return Invalid(a.name, ": ", error);
  }
  v->dst = {kUnknown, v->h.out, v->w.out};
  if (v->src.n == kUnknown) return absl::OkStatus();
  if (v->src.n % attrs.depth != 0) {
    return Invalid("src has ", v->src.n, " slices, which are no whole volumes of ", attrs.depth);
  }
  v->dst.n = v->src.n / attrs.depth * v->d.out;
  return absl::OkStatus();
}

Status ConvVolumeShape(const ConvVolumeAttrs& attrs, const PartialTensorShape& src,
                       const PartialTensorShape& weights,
                       const std::vector<PartialTensorShape>& args, PartialTensorShape* dst) {
  VolumeWindows v;
  TF_RETURN_IF_ERROR(ResolveVolume(attrs, src, &v));
  TF_RETURN_IF_ERROR(CheckWeightsSize(weights, attrs.weights_size(), attrs.weights_offset));
  OperandShapes shapes;
  TF_RETURN_IF_ERROR(MakeOperandShapes(attrs.dst_layout, attrs.oc(), v.dst, &shapes));
  TF_RETURN_IF_ERROR(CheckOperands(attrs.post_ops, args, shapes));
  return MakeShape(attrs.dst_layout, attrs.oc(), v.dst, dst);
}

}  // namespace bd
