// Attributes of BlockdnnConvVolume and the shape of its result.
#ifndef CC_TENSORFLOW_ATTRS_CONV_CONV_VOLUME_ATTRS_H_
#define CC_TENSORFLOW_ATTRS_CONV_CONV_VOLUME_ATTRS_H_

#include <string>
#include <vector>

#include "cc/tensorflow/attrs/shape_fns.h"

namespace bd {

// weights_shape is [kd, kh, kw, ic, oc].
struct ConvVolumeAttrs : PackedWeightsAttrs {
  Layout src_layout = Layout::nChw16c, dst_layout = Layout::nChw16c;
  int64_t channels = 0, depth = 0;
  std::vector<int64_t> strides;  // depth, height, width
  Padding padding = Padding::kValid;

  int64_t oc() const { return weights_shape[4]; }

  template <typename Context>
  Status Read(Context* c) {
    std::string text;
    TF_RETURN_IF_ERROR(ReadLayout(c, "src_layout", &src_layout));
    TF_RETURN_IF_ERROR(ReadLayout(c, "dst_layout", &dst_layout));
    TF_RETURN_IF_ERROR(c->GetAttr("channels", &channels));
    TF_RETURN_IF_ERROR(c->GetAttr("depth", &depth));
    TF_RETURN_IF_ERROR(ReadWeights(c));
    TF_RETURN_IF_ERROR(c->GetAttr("strides", &strides));
    TF_RETURN_IF_ERROR(c->GetAttr("padding", &text));
    TF_RETURN_IF_ERROR(Check());
    ParsePadding(text, &padding);  // the op's definition allows no others
    return post_ops.Read(c);
  }

 private:
  Status Check() const;
};

// The window over a volume, the planes of a slice of src and of dst; n counts slices. An open size
// is kUnknown.
struct VolumeWindows {
  Window1d d, h, w;
  Plane src, dst;
};
Status ResolveVolume(const ConvVolumeAttrs& attrs, const PartialTensorShape& src,
                     VolumeWindows* windows);
Status ConvVolumeShape(const ConvVolumeAttrs& attrs, const PartialTensorShape& src,
                       const PartialTensorShape& weights,
                       const std::vector<PartialTensorShape>& args, PartialTensorShape* dst);

}  // namespace bd

#endif  // CC_TENSORFLOW_ATTRS_CONV_CONV_VOLUME_ATTRS_H_
