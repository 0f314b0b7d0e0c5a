#include "cc/tensorflow/attrs/shape_fns.h"
#include "tensorflow/core/framework/op.h"

using tensorflow::shape_inference::InferenceContext;

REGISTER_OP("BlockdnnPool")
    .Input("src: T")
    .Input(bd::kIntoInput)
    .Output("dst: T")
    .Attr("T: {float} = DT_FLOAT")
    .Attr("kind: {'max', 'avg'}")
    .Attr("channels: int >= 1")
    .Attr("ksize: list(int)")
    .Attr("strides: list(int) = [1, 1]")
    .Attr("padding: {'SAME', 'VALID', 'EXPLICIT'}")
    .Attr("explicit_paddings: list(int) = []")
    .Attr(bd::kSrcPartAttr)
    .Attr(bd::kDstPartAttr)
    .Attr(bd::kIntoAttr)
    .SetShapeFn([](InferenceContext* c) {
      bd::PoolAttrs attrs;
      TF_RETURN_IF_ERROR(attrs.Read(c));
      bd::PartialTensorShape dst;
      TF_RETURN_IF_ERROR(bd::PoolShape(attrs, bd::InputShapes(c, 0), &dst));
      return bd::SetOutputShape(c, dst);
    })
    .Doc(R"doc(
Max or average pooling of an nChw16c activation.

Padding never wins a maximum and never counts in an average.

src: [N, ceil(channels / 16), H, W, 16].
into: nothing, or what dst starts as, [N, ceil(total / 16), out height, out width, 16]. dst
  takes its memory where nobody else holds it.
dst: the pooled activation, nChw16c.
ksize: [height, width].
strides: [height, width].
explicit_paddings: [top, bottom, left, right], only with padding = EXPLICIT.
src_part: [first channel, channels of the tensor], if src is a part of a wider tensor.
dst_part: [first channel, channels of the tensor], if the result is a part of a wider
  tensor, which is then dst: what into holds, or undefined, outside of the part.
)doc");

REGISTER_OP("BlockdnnPoolGrad")
    .Input("ddst: T")
    .Input("src: T")
    .Input("dst: T")
    .Output("dsrc: T")
    .Attr("T: {float} = DT_FLOAT")
    .Attr("kind: {'max', 'avg'}")
    .Attr("channels: int >= 1")
    .Attr("ksize: list(int)")
    .Attr("strides: list(int) = [1, 1]")
    .Attr("padding: {'SAME', 'VALID', 'EXPLICIT'}")
    .Attr("explicit_paddings: list(int) = []")
    .SetShapeFn([](InferenceContext* c) {
      bd::PoolAttrs attrs;
      TF_RETURN_IF_ERROR(attrs.ReadWithoutParts(c));
      TF_RETURN_IF_ERROR(bd::CheckPoolGradShapes(attrs, bd::InputShapes(c, 0)));
      c->set_output(0, c->input(1));
      return absl::OkStatus();
    })
    .Doc(R"doc(
The gradient of BlockdnnPool by its source.

Of several elements of a window that are its maximum, the first takes all.

ddst: the gradient of dst.
src: nChw16c, the source of the pooling.
dst: its result.
dsrc: as src.
)doc");

REGISTER_OP("BlockdnnGlobalPool")
    .Input("src: T")
    .Output("dst: T")
    .Attr("T: {float} = DT_FLOAT")
    .Attr("kind: {'max', 'avg'}")
    .Attr("channels: int >= 1")
    .Attr("dst_layout: {'nc', 'nhwc', 'nChw16c'}")
    .SetShapeFn([](InferenceContext* c) {
      bd::GlobalPoolAttrs attrs;
      TF_RETURN_IF_ERROR(attrs.Read(c));
      bd::PartialTensorShape dst;
      TF_RETURN_IF_ERROR(bd::GlobalPoolShape(attrs, bd::InputShape(c, 0), &dst));
      return bd::SetOutputShape(c, dst);
    })
    .Doc(R"doc(
Maximum or mean over the whole plane of an nChw16c activation.

src: [N, ceil(channels / 16), H, W, 16].
dst: [N, C] (nc), [N, 1, 1, C] (nhwc) or [N, ceil(C / 16), 1, 1, 16] (nChw16c).
)doc");
