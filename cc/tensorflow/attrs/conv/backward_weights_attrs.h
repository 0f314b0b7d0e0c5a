// Attributes and shapes of BlockdnnConvBackwardWeights.
#ifndef CC_TENSORFLOW_ATTRS_CONV_BACKWARD_WEIGHTS_ATTRS_H_
#define CC_TENSORFLOW_ATTRS_CONV_BACKWARD_WEIGHTS_ATTRS_H_

#include <string>
#include <vector>

#include "cc/tensorflow/attrs/shape_fns.h"

namespace bd {

struct BackwardWeightsAttrs {
  ConvAttrs conv;  // the convolution, without a chain

  template <typename Context>
  Status Read(Context* c) {
    std::vector<int64_t> strides, dilations, explicit_paddings;
    std::string padding;
    TF_RETURN_IF_ERROR(ReadLayout(c, "src_layout", &conv.src_layout));
    TF_RETURN_IF_ERROR(ReadLayout(c, "dst_layout", &conv.dst_layout));
    TF_RETURN_IF_ERROR(c->GetAttr("channels", &conv.channels));
    TF_RETURN_IF_ERROR(c->GetAttr("groups", &conv.groups));
    TF_RETURN_IF_ERROR(c->GetAttr("weights_shape", &conv.weights_shape));
    TF_RETURN_IF_ERROR(c->GetAttr("strides", &strides));
    TF_RETURN_IF_ERROR(c->GetAttr("dilations", &dilations));
    TF_RETURN_IF_ERROR(c->GetAttr("padding", &padding));
    TF_RETURN_IF_ERROR(c->GetAttr("explicit_paddings", &explicit_paddings));
    conv.algorithm = "auto";
    return conv.SetWindow(strides, dilations, padding, explicit_paddings);
  }

  PartialTensorShape weights() const {
    return PartialTensorShape(tensorflow::gtl::ArraySlice<int64_t>(conv.weights_shape));
  }

  // Of src and ddst; an error where ddst is not what the convolution of src would be.
  Status CheckShapes(const PartialTensorShape& src, const PartialTensorShape& ddst) const {
    PartialTensorShape dst;
    TF_RETURN_IF_ERROR(ConvShape(conv, src, weights(), {}, &dst));
    if (dst.IsCompatibleWith(ddst)) return absl::OkStatus();
    return Invalid("ddst must have the shape of the convolution's result, ", dst.DebugString(),
                   "; got ", ddst.DebugString());
  }
};

}  // namespace bd

#endif  // CC_TENSORFLOW_ATTRS_CONV_BACKWARD_WEIGHTS_ATTRS_H_
