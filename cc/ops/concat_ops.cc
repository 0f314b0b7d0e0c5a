#include "cc/ops/shape_fns.h"
#include "tensorflow/core/framework/op.h"

using tensorflow::shape_inference::InferenceContext;

REGISTER_OP("BlockdnnConcat")
    .Input("values: N * T")
    .Output("dst: T")
    .Attr("T: {float} = DT_FLOAT")
    .Attr("N: int >= 1")
    .Attr("channels: list(int)")
    .SetShapeFn([](InferenceContext* c) {
      bd::ConcatAttrs attrs;
      TF_RETURN_IF_ERROR(attrs.Read(c));
      bd::PartialTensorShape dst;
      TF_RETURN_IF_ERROR(bd::ConcatShape(attrs, bd::InputShapes(c, 0), &dst));
      return bd::SetOutputShape(c, dst);
    })
    .Doc(R"doc(
Joins nChw16c activations along their channels.

values: each [N, ceil(channels[i] / 16), H, W, 16].
dst: [N, ceil(sum(channels) / 16), H, W, 16]; channels follow each other without
  gaps, whatever their numbers.
channels: the logical channels of each value.
)doc");
