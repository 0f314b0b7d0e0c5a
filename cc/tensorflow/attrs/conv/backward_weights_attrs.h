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
    TF_RETURN_IF_ERROR(conv.ReadConv(c));
    TF_RETURN_IF_ERROR(c->GetAttr("weights_shape", &conv.weights_shape));
    conv.algorithm = "auto";
    return conv.ReadWindow(c);
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
