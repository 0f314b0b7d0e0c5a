// Attributes of BlockdnnConvVolume and the shape of its result.
#ifndef CC_TENSORFLOW_ATTRS_CONV_CONV_VOLUME_ATTRS_H_
#define CC_TENSORFLOW_ATTRS_CONV_CONV_VOLUME_ATTRS_H_

#include <string>
#include <vector>

#include "cc/tensorflow/attrs/shape_fns.h"

namespace bd {

struct ConvVolumeAttrs {
  Layout src_layout = Layout::nChw16c, dst_layout = Layout::nChw16c;
  std::string algorithm;
  int64_t channels = 0, depth = 0, weights_offset = 0;
  std::vector<int64_t> weights_shape;  // kd, kh, kw, ic, oc
  std::vector<int64_t> strides;        // depth, height, width
  Padding padding = Padding::kValid;
  bool constant_weights = false;
  ChainAttrs post_ops;

  int64_t oc() const { return weights_shape[4]; }
  int64_t weights_size() const;

  template <typename Context>
  Status Read(Context* c) {
    std::string chain, text;
    int num_args;
    TF_RETURN_IF_ERROR(ReadLayout(c, "src_layout", &src_layout));
    TF_RETURN_IF_ERROR(ReadLayout(c, "dst_layout", &dst_layout));
    TF_RETURN_IF_ERROR(c->GetAttr("algorithm", &algorithm));
    TF_RETURN_IF_ERROR(c->GetAttr("channels", &channels));
    TF_RETURN_IF_ERROR(c->GetAttr("depth", &depth));
    TF_RETURN_IF_ERROR(c->GetAttr("weights_shape", &weights_shape));
    TF_RETURN_IF_ERROR(c->GetAttr("weights_offset", &weights_offset));
    TF_RETURN_IF_ERROR(c->GetAttr("strides", &strides));
    TF_RETURN_IF_ERROR(c->GetAttr("padding", &text));
    TF_RETURN_IF_ERROR(c->GetAttr("constant_weights", &constant_weights));
    TF_RETURN_IF_ERROR(c->GetAttr("post_ops", &chain));
    TF_RETURN_IF_ERROR(c->GetAttr("num_args", &num_args));
    TF_RETURN_IF_ERROR(Check());
    ParsePadding(text, &padding);  // the op's definition allows no others
    return post_ops.Set(chain, num_args);
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
