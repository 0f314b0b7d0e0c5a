#include "cc/tensorflow/attrs/shape_fns.h"
#include "tensorflow/core/framework/op.h"

using tensorflow::shape_inference::InferenceContext;

REGISTER_OP("BlockdnnEltwise")
    .Input("src: T")
    .Input("args: num_args * T")
    .Input(bd::kIntoInput)
    .Output("dst: T")
    .Attr("T: {float} = DT_FLOAT")
    .Attr("num_args: int >= 0")
    .Attr("layout: {'nhwc', 'nChw16c'}")
    .Attr("channels: int >= 1")
    .Attr("post_ops: string")
    .Attr(bd::kSrcPartAttr)
    .Attr(bd::kDstPartAttr)
    .Attr(bd::kIntoAttr)
    .SetShapeFn([](InferenceContext* c) {
      bd::EltwiseAttrs attrs;
      TF_RETURN_IF_ERROR(attrs.Read(c));
      bd::PartialTensorShape dst;
      TF_RETURN_IF_ERROR(
          bd::EltwiseShape(attrs, bd::InputShape(c, 0), bd::InputShapes(c, 1), &dst));
      return bd::SetOutputShape(c, dst);
    })
    .Doc(R"doc(
Applies a chain of post-ops to every element of src.

src: the activation in `layout`; nhwc stands for any axes with the channels behind them.
args: the operands that post_ops name #0, #1, ...
into: nothing, or what dst starts as, [N, ceil(total / 16), out height, out width, 16]. dst
  takes its memory where nobody else holds it.
dst: the result, in the shape and layout of src.
channels: the logical number of channels of src.
post_ops: entries joined by ';', for example "binary(add,tensor,#0);eltwise(relu)".
src_part: [first channel, channels of the tensor], if src is a part of a wider tensor.
dst_part: [first channel, channels of the tensor], if the result is a part of a wider
  tensor, which is then dst: what into holds, or undefined, outside of the part.
)doc");
