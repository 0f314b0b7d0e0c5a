// Attributes of BlockdnnConvTranspose and the shape of its result.
#ifndef CC_TENSORFLOW_ATTRS_CONV_CONV_TRANSPOSE_ATTRS_H_
#define CC_TENSORFLOW_ATTRS_CONV_CONV_TRANSPOSE_ATTRS_H_

#include <string>
#include <vector>

#include "cc/tensorflow/attrs/shape_fns.h"

namespace bd {

// src is nChw16c.
struct ConvTransposeAttrs {
  Layout dst_layout = Layout::nChw16c;
  std::string algorithm;
  int64_t channels = 0, weights_offset = 0;
  std::vector<int64_t> weights_shape;  // kh, kw, oc, ic
  std::vector<int64_t> strides;        // height, width
  std::vector<int64_t> crops;          // top, bottom, left, right
  bool constant_weights = false;
  ChannelPart src_part;
  DstPart dst_part;
  ChainAttrs post_ops;

  int64_t oc() const { return weights_shape[2]; }
  int64_t weights_size() const;

  template <typename Context>
  Status Read(Context* c) {
    std::string chain;
    int num_args;
    TF_RETURN_IF_ERROR(ReadLayout(c, "dst_layout", &dst_layout));
    TF_RETURN_IF_ERROR(c->GetAttr("algorithm", &algorithm));
    TF_RETURN_IF_ERROR(c->GetAttr("channels", &channels));
    TF_RETURN_IF_ERROR(c->GetAttr("weights_shape", &weights_shape));
    TF_RETURN_IF_ERROR(c->GetAttr("weights_offset", &weights_offset));
    TF_RETURN_IF_ERROR(c->GetAttr("strides", &strides));
    TF_RETURN_IF_ERROR(c->GetAttr("crops", &crops));
    TF_RETURN_IF_ERROR(c->GetAttr("constant_weights", &constant_weights));
    TF_RETURN_IF_ERROR(c->GetAttr("post_ops", &chain));
    TF_RETURN_IF_ERROR(c->GetAttr("num_args", &num_args));
    TF_RETURN_IF_ERROR(Check());
    TF_RETURN_IF_ERROR(src_part.Read(c, "src_part", Layout::nChw16c, channels));
    TF_RETURN_IF_ERROR(dst_part.Read(c, dst_layout, oc()));
    return post_ops.Set(chain, num_args);
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
