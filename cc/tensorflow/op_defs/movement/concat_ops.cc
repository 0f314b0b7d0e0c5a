#include "cc/tensorflow/attrs/shape_fns.h"
#include "tensorflow/core/framework/op.h"

using tensorflow::shape_inference::InferenceContext;

REGISTER_OP("BlockdnnConcat")
    .Input("values: N * T")
    .Input(bd::kIntoInput)
    .Output("dst: T")
    .Attr("T: {float} = DT_FLOAT")
    .Attr("N: int >= 1")
    .Attr("channels: list(int)")
    .Attr("src_parts: list(int) = []")
    .Attr(bd::kDstPartAttr)
    .Attr(bd::kIntoAttr)
    .SetShapeFn([](InferenceContext* c) {
      bd::ConcatAttrs attrs;
      TF_RETURN_IF_ERROR(attrs.Read(c));
      bd::PartialTensorShape dst;
      TF_RETURN_IF_ERROR(bd::ConcatShape(attrs, bd::InputShapes(c, 0), &dst));
      return bd::SetOutputShape(c, dst);
    })
    .Doc(R"doc(
Joins nChw16c activations, or some channels of each, along their channels.

values: each [N, ceil(channels[i] / 16), H, W, 16], or as many blocks as src_parts says.
into: nothing, or what dst starts as, [N, ceil(total / 16), out height, out width, 16]. dst
  takes its memory where nobody else holds it.
dst: [N, ceil(sum(channels) / 16), H, W, 16]; channels follow each other without
  gaps, whatever their numbers.
channels: the logical channels of each value that are joined.
src_parts: [first channel, channels of the tensor] of each value, one after the other, if a value
  is not joined whole. A part may begin and end at any channel.
dst_part: [first channel, channels of the tensor], if the result is a part of a wider
  tensor, which is then dst: what into holds, or undefined, outside of the part.
)doc");
