// Attributes of BlockdnnConvTranspose and the shape of its result.
#ifndef CC_TENSORFLOW_ATTRS_CONV_CONV_TRANSPOSE_ATTRS_H_
#define CC_TENSORFLOW_ATTRS_CONV_CONV_TRANSPOSE_ATTRS_H_

#include <string>
#include <vector>

#include "cc/tensorflow/attrs/shape_fns.h"

namespace bd {

// src is nChw16c.
// weights_shape is [kh, kw, oc, ic].
struct ConvTransposeAttrs : PackedWeightsAttrs {
  Layout dst_layout = Layout::nChw16c;
  int64_t channels = 0;
  std::vector<int64_t> strides;  // height, width
  std::vector<int64_t> crops;    // top, bottom, left, right
  ChannelPart src_part;
  DstPart dst_part;

  int64_t oc() const { return weights_shape[2]; }

  template <typename Context>
  Status Read(Context* c) {
    TF_RETURN_IF_ERROR(ReadLayout(c, "dst_layout", &dst_layout));
    TF_RETURN_IF_ERROR(c->GetAttr("channels", &channels));
    TF_RETURN_IF_ERROR(ReadWeights(c));
    TF_RETURN_IF_ERROR(c->GetAttr("strides", &strides));
    TF_RETURN_IF_ERROR(c->GetAttr("crops", &crops));
    TF_RETURN_IF_ERROR(Check());
    TF_RETURN_IF_ERROR(src_part.Read(c, "src_part", Layout::nChw16c, channels));
    TF_RETURN_IF_ERROR(dst_part.Read(c, dst_layout, oc()));
    return post_ops.Read(c);
  }

 private:
  Status Check() const;
};

// The plane of its result.
Status ConvTransposePlane(const ConvTransposeAttrs& attrs, const Plane& src, Plane* dst);
// args: the operands, then into if it is there.
Status ConvTransposeShape(const ConvTransposeAttrs& attrs, const PartialTensorShape& src,
                          const PartialTensorShape& weights,
                          const std::vector<PartialTensorShape>& args, PartialTensorShape* dst);

}  // namespace bd

#endif  // CC_TENSORFLOW_ATTRS_CONV_CONV_TRANSPOSE_ATTRS_H_
