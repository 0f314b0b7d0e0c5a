#include "cc/ops/shape_fns.h"
#include "tensorflow/core/framework/op.h"

using tensorflow::shape_inference::InferenceContext;

REGISTER_OP("BlockdnnReorder")
    .Input("src: T")
    .Output("dst: T")
    .Attr("T: {float} = DT_FLOAT")
    .Attr("src_layout: {'nhwc', 'nChw16c'}")
    .Attr("dst_layout: {'nhwc', 'nChw16c'}")
    .Attr("channels: int >= 1")
    .SetShapeFn([](InferenceContext* c) {
      bd::ReorderAttrs attrs;
      TF_RETURN_IF_ERROR(attrs.Read(c));
      bd::PartialTensorShape dst;
      TF_RETURN_IF_ERROR(bd::ReorderShape(attrs, bd::InputShape(c, 0), &dst));
      return bd::SetOutputShape(c, dst);
    })
    .Doc(R"doc(
Copies an activation from one memory layout to another.

A blocked tensor nChw16c is [N, ceil(channels / 16), H, W, 16]; the lanes beyond
the last channel are written as zero, and dropped on the way back.

src: the activation in src_layout.
dst: the same values in dst_layout.
channels: the logical number of channels C.
)doc");
