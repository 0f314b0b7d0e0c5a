#include "cc/tensorflow/attrs/shape_fns.h"
#include "tensorflow/core/framework/op.h"

using tensorflow::shape_inference::InferenceContext;

REGISTER_OP("BlockdnnSqueezeExcite")
    .Input("src: T")
    .Input("reduce_weights: T")
    .Input("reduce_bias: T")
    .Input("expand_weights: T")
    .Input("expand_bias: T")
    .Output("dst: T")
    .Attr("T: {float} = DT_FLOAT")
    .Attr("channels: int >= 1")
    .Attr("squeezed: int >= 1")
    .Attr("offsets: list(int) = [0, 0, 0, 0]")
    .Attr("reduce_post_ops: string = 'eltwise(relu)'")
    .Attr("expand_post_ops: string = 'eltwise(logistic)'")
    .Attr("dst_layout: {'nc', 'nhwc', 'nChw16c'}")
    .Attr("scale_src: bool = false")
    .Attr(bd::kScratchpadModeAttr)
    .SetShapeFn([](InferenceContext* c) {
      bd::SqueezeExciteAttrs attrs;
      TF_RETURN_IF_ERROR(attrs.Read(c));
      bd::PartialTensorShape dst;
      TF_RETURN_IF_ERROR(
          bd::SqueezeExciteShape(attrs, bd::InputShape(c, 0), bd::InputShapes(c, 1), &dst));
      return bd::SetOutputShape(c, dst);
    })
    .Doc(R"doc(
A scale for each sample and channel of an nChw16c activation from the means of all:
g(f(mean(src) * reduce_weights + reduce_bias) * expand_weights + expand_bias).

src: [N, ceil(channels / 16), H, W, 16].
reduce_weights: [channels, squeezed]; as the next three a part of any tensor.
reduce_bias: [squeezed].
expand_weights: [squeezed, channels].
expand_bias: [channels].
dst: [N, C] (nc), [N, 1, 1, C] (nhwc) or [N, ceil(C / 16), 1, 1, 16] (nChw16c);
  with scale_src as src.
squeezed: the number of values between the two products.
offsets: the first element of reduce_weights, reduce_bias, expand_weights and
  expand_bias in their tensors.
reduce_post_ops: f, eltwise entries joined by ';'.
expand_post_ops: g, the same.
scale_src: dst is src times its scales, in src's memory where nobody else needs it;
  dst_layout must be nChw16c.
scratchpad_mode: user takes temporary memory from TensorFlow's allocator for each
  execution; library keeps buffers with the kernel. Safe on many threads, both.
)doc");
