#include "cc/tensorflow/attrs/conv/conv_transpose_attrs.h"
#include "tensorflow/core/framework/op.h"

REGISTER_OP("BlockdnnConvTranspose")
    .Input("src: T")
    .Input("weights: T")
    .Input("args: num_args * T")
    .Input(bd::kIntoInput)
    .Output("dst: T")
    .Attr("T: {float} = DT_FLOAT")
    .Attr("num_args: int >= 0")
    .Attr("dst_layout: {'nhwc', 'nChw16c'} = 'nChw16c'")
    .Attr("channels: int >= 1")
    .Attr("weights_shape: list(int)")
    .Attr("weights_offset: int >= 0 = 0")
    .Attr("strides: list(int) = [1, 1]")
    .Attr("crops: list(int) = [0, 0, 0, 0]")
    .Attr("post_ops: string = ''")
    .Attr(bd::kAlgorithmAttr)
    .Attr("constant_weights: bool = false")
    .Attr(bd::kSrcPartAttr)
    .Attr(bd::kDstPartAttr)
    .Attr(bd::kIntoAttr)
    .Attr(bd::kScratchpadModeAttr)
    .SetShapeFn(bd::PackedWeightsOpShape<bd::ConvTransposeAttrs, bd::ConvTransposeShape>)
    .Doc(R"doc(
2-D transposed convolution followed by a chain of post-ops.

src: the activation, nChw16c.
weights: elements [weights_offset, weights_offset + prod(weights_shape)) of this
  tensor, whatever its shape, are the filter in the order of tf.nn.conv2d_transpose.
args: the operands that post_ops name #0, #1, ...
into: nothing, or what dst starts as, [N, ceil(total / 16), out height, out width, 16]. dst
  takes its memory where nobody else holds it.
dst: the result in dst_layout; nhwc only with fewer than 16 output channels.
channels: the logical number of channels of src.
weights_shape: [kh, kw, output channels, channels].
strides: [height, width]; each at most 16.
crops: [top, bottom, left, right]: pixels cut off from what source pixels reach, (size - 1) *
  stride + kernel an axis. At the bottom and on the right a negative number adds pixels.
post_ops: entries joined by ';', for example "binary(add,channel,#0);eltwise(relu)".
algorithm: of the convolutions that make it, as in BlockdnnConv.
constant_weights: the weights and the channel operands never change, so their
  packed form may be kept for good.
src_part: [first channel, channels of the tensor], if src is a part of a wider tensor.
dst_part: [first channel, channels of the tensor], if the result is a part of a wider
  tensor, which is then dst: what into holds, or undefined, outside of the part.
scratchpad_mode: user takes temporary memory from TensorFlow's allocator for each
  execution; library keeps buffers with the kernel. Safe on many threads, both.
)doc");
