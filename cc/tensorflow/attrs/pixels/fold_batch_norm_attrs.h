// Attributes and shapes of BlockdnnFoldBatchNorm.
#ifndef CC_TENSORFLOW_ATTRS_PIXELS_FOLD_BATCH_NORM_ATTRS_H_
#define CC_TENSORFLOW_ATTRS_PIXELS_FOLD_BATCH_NORM_ATTRS_H_

#include <vector>

#include "cc/tensorflow/attrs/shape_fns.h"

namespace bd {

struct FoldBatchNormAttrs {
  int64_t channels = 0, inner = 1;
  float epsilon = 0.f;

  template <typename Context>
  Status Read(Context* c) {
    TF_RETURN_IF_ERROR(c->GetAttr("channels", &channels));
    TF_RETURN_IF_ERROR(c->GetAttr("inner", &inner));
    TF_RETURN_IF_ERROR(c->GetAttr("epsilon", &epsilon));
    if (channels < 1 || inner < 1) {  // an eager call does not look at an attribute's least value
      return Invalid("channels and inner must be at least 1: ", channels, " and ", inner);
    }
    return epsilon >= 0 ? absl::OkStatus() : Invalid("epsilon must not be negative: ", epsilon);
  }

  // The first input is weights, the others rows of channels.
  Status CheckShapes(const std::vector<PartialTensorShape>& inputs) const {
    const int64_t elements = inputs[0].num_elements();  // -1: not known
    const bool whole = elements % channels == 0 && elements / channels % inner == 0;
    if (elements > 0 && !whole) {
      return Invalid("weights must have a multiple of channels * inner = ", channels, " * ", inner,
                     " elements; got ", inputs[0].DebugString());
    }
    for (size_t i = 1; i < inputs.size(); ++i) {
      if (inputs[i].IsCompatibleWith(PartialTensorShape({channels}))) continue;
      return Invalid("input ", i, " must be [", channels, "]; got ", inputs[i].DebugString());
    }
    return absl::OkStatus();
  }
};

}  // namespace bd

#endif  // CC_TENSORFLOW_ATTRS_PIXELS_FOLD_BATCH_NORM_ATTRS_H_
