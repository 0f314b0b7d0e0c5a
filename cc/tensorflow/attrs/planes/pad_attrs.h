// Attributes and shape rules of BlockdnnPad, for the shape function and the kernel.
#ifndef CC_TENSORFLOW_ATTRS_PLANES_PAD_ATTRS_H_
#define CC_TENSORFLOW_ATTRS_PLANES_PAD_ATTRS_H_

#include <cstdint>
#include <vector>

#include "cc/tensorflow/attrs/shape_fns.h"

namespace bd {

struct PadAttrs {
  int64_t channels = 0;
  std::vector<int64_t> paddings;  // top, bottom, left, right

  template <typename Context>
  Status Read(Context* c) {
    TF_RETURN_IF_ERROR(c->GetAttr("channels", &channels));
    TF_RETURN_IF_ERROR(c->GetAttr("paddings", &paddings));
    return Check();
  }

 private:
  Status Check() const;
};

// The planes of src and of dst, as far as they are known.
Status PadPlanes(const PadAttrs& attrs, const PartialTensorShape& src, Plane* plane,
                 Plane* dst_plane);

}  // namespace bd

#endif  // CC_TENSORFLOW_ATTRS_PLANES_PAD_ATTRS_H_
