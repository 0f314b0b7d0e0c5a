// Attributes and shape rules of BlockdnnLayerNorm, for the shape function and the kernel.
#ifndef CC_TENSORFLOW_ATTRS_PIXELS_LAYER_NORM_ATTRS_H_
#define CC_TENSORFLOW_ATTRS_PIXELS_LAYER_NORM_ATTRS_H_

#include <cstdint>
#include <vector>

#include "cc/tensorflow/attrs/shape_fns.h"

namespace bd {

struct LayerNormAttrs {
  Layout layout = Layout::nChw16c;
  int64_t channels = 0;
  float epsilon = 0.f;
  std::vector<int64_t> offsets;  // of gamma and beta in their tensors

  template <typename Context>
  Status Read(Context* c) {
    TF_RETURN_IF_ERROR(ReadLayout(c, "layout", &layout));
    TF_RETURN_IF_ERROR(c->GetAttr("channels", &channels));
    TF_RETURN_IF_ERROR(c->GetAttr("epsilon", &epsilon));
    TF_RETURN_IF_ERROR(c->GetAttr("offsets", &offsets));
    return Check();
  }

 private:
  Status Check() const;
};

// Checks the shapes and sets what is known of the plane. dst has the shape of src.
Status LayerNormPlane(const LayerNormAttrs& attrs, const PartialTensorShape& src,
                      const PartialTensorShape& gamma, const PartialTensorShape& beta,
                      Plane* plane);

}  // namespace bd

#endif  // CC_TENSORFLOW_ATTRS_PIXELS_LAYER_NORM_ATTRS_H_
