// Attributes and shape rules of BlockdnnShuffle, for the shape function and the kernel.
#ifndef CC_TENSORFLOW_ATTRS_MOVEMENT_SHUFFLE_ATTRS_H_
#define CC_TENSORFLOW_ATTRS_MOVEMENT_SHUFFLE_ATTRS_H_

#include <cstdint>
#include <string>

#include "cc/tensorflow/attrs/shape_fns.h"

namespace bd {

struct ShuffleAttrs {
  int64_t axis = 0, group = 1, channels = 0;
  std::string layout;  // empty: a plain tensor of any rank
  bool backward = false;
  int64_t rank = 0;   // of the logical tensor, if there is a layout
  int64_t block = 1;  // of the layout

  template <typename Context>
  Status Read(Context* c) {
    TF_RETURN_IF_ERROR(c->GetAttr("axis", &axis));
    TF_RETURN_IF_ERROR(c->GetAttr("group", &group));
    TF_RETURN_IF_ERROR(c->GetAttr("layout", &layout));
    TF_RETURN_IF_ERROR(c->GetAttr("channels", &channels));
    TF_RETURN_IF_ERROR(c->GetAttr("backward", &backward));
    return Check();
  }

 private:
  Status Check();
};

// The tensor as [outer, channels, inner] around the axis, in blocks where that is the
// axis of blocks. What is not known yet is kUnknown.
struct ShuffleView {
  int64_t outer = kUnknown, channels = kUnknown, inner = kUnknown;
  int64_t block = 1;
  int64_t group = kUnknown;  // C/G on the way back
};
Status ViewForShuffle(const ShuffleAttrs& attrs, const PartialTensorShape& src, ShuffleView* view);

}  // namespace bd

#endif  // CC_TENSORFLOW_ATTRS_MOVEMENT_SHUFFLE_ATTRS_H_
