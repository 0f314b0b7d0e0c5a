// Attributes of BlockdnnResize and the shape of its result.
#ifndef CC_TENSORFLOW_ATTRS_PLANES_RESIZE_ATTRS_H_
#define CC_TENSORFLOW_ATTRS_PLANES_RESIZE_ATTRS_H_

#include <string>
#include <vector>

#include "cc/tensorflow/attrs/shape_fns.h"

namespace bd {

struct ResizeAttrs {
  std::string kind;         // nearest or bilinear
  std::string coordinates;  // half_pixel, asymmetric or align_corners
  int64_t channels = 0;
  std::vector<int64_t> scales, size;  // [height, width], one of the two
  ChannelPart src_part;
  DstPart dst_part;

  template <typename Context>
  Status Read(Context* c) {
    TF_RETURN_IF_ERROR(c->GetAttr("kind", &kind));
    TF_RETURN_IF_ERROR(c->GetAttr("coordinates", &coordinates));
    TF_RETURN_IF_ERROR(c->GetAttr("channels", &channels));
    TF_RETURN_IF_ERROR(c->GetAttr("scales", &scales));
    TF_RETURN_IF_ERROR(c->GetAttr("size", &size));
    TF_RETURN_IF_ERROR(src_part.Read(c, "src_part", Layout::nChw16c, channels));
    TF_RETURN_IF_ERROR(dst_part.Read(c, Layout::nChw16c, channels));
    return Check();
  }

 private:
  Status Check() const;
};

// The planes of src and dst.
Status ResizePlanes(const ResizeAttrs& attrs, const PartialTensorShape& src, Plane* src_plane,
                    Plane* dst_plane);
// inputs: src, then into if it is there.
Status ResizeShape(const ResizeAttrs& attrs, const std::vector<PartialTensorShape>& inputs,
                   PartialTensorShape* dst);

}  // namespace bd

#endif  // CC_TENSORFLOW_ATTRS_PLANES_RESIZE_ATTRS_H_
