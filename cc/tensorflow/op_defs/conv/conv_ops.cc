#include "cc/tensorflow/attrs/shape_fns.h"
#include "tensorflow/core/framework/op.h"

REGISTER_OP("BlockdnnConv")
    .Input("src: T")
    .Input("weights: T")
    .Input("args: num_args * T")
    .Input(bd::kIntoInput)
    .Output("dst: T")
    .Attr("T: {float} = DT_FLOAT")
    .Attr("num_args: int >= 0")
    .Attr("src_layout: {'nhwc', 'nChw16c'}")
    .Attr("dst_layout: {'nhwc', 'nChw16c'}")
    .Attr("channels: int >= 1")
    .Attr("weights_shape: list(int)")
    .Attr("weights_offset: int >= 0 = 0")
    .Attr("groups: int >= 1 = 1")
    .Attr("strides: list(int) = [1, 1]")
    .Attr("dilations: list(int) = [1, 1]")
    .Attr("padding: {'SAME', 'VALID', 'EXPLICIT'}")
    .Attr("explicit_paddings: list(int) = []")
    .Attr("post_ops: string = ''")
    .Attr("pool: list(int) = []")
    .Attr(bd::kAlgorithmAttr)
    .Attr("constant_weights: bool = false")
    .Attr(bd::kSrcPartAttr)
    .Attr(bd::kSrcBlocksAttr)
    .Attr(bd::kDstPartAttr)
    .Attr(bd::kIntoAttr)
    .Attr(bd::kScratchpadModeAttr)
    .SetShapeFn(bd::PackedWeightsOpShape<bd::ConvAttrs, bd::ConvShape>)
    .Doc(R"doc(
2-D convolution followed by a chain of post-ops, applied before the store.

src: the activation in src_layout.
weights: elements [weights_offset, weights_offset + prod(weights_shape)) of this
  tensor, whatever its shape, are the filter in HWIO order.
args: the operands that post_ops name #0, #1, ...
into: nothing, or what dst starts as, [N, ceil(total / 16), out height, out width, 16]. dst
  takes its memory where nobody else holds it.
dst: the result in dst_layout.
channels: the logical number of channels of src.
weights_shape: [kh, kw, channels / groups, output channels].
strides: [height, width].
dilations: [height, width].
explicit_paddings: [top, bottom, left, right], only with padding = EXPLICIT.
post_ops: entries joined by ';', for example
  "binary(add,channel,#0);sum(#1);eltwise(relu)".
pool: [height, width] of max pooling behind post_ops, in windows that touch; rows and
  columns that fill no window are left out. Only [2, 2], nChw16c, and where Winograd holds
  whole windows in its tiles. The result has the bits of BlockdnnPool.
algorithm: direct sums exactly the products of the definition; winograd saves
  multiplications of some windows, paired (nChw16c, AVX-512) a third of all, and both
  round more; where they do not apply they are direct. auto takes what is faster,
  auto_small what is faster with packed weights of at most twice the size,
  auto_smallest with at most 9/8.
constant_weights: the weights and the channel operands never change, so their
  packed form may be kept for good.
src_part: [first channel, channels of the tensor], if src is a part of a wider tensor.
src_blocks: with src_part = [0, a multiple of 16], the channel blocks of that tensor which are
  src, ascending; none: a contiguous part.
dst_part: [first channel, channels of the tensor], if the result is a part of a wider
  tensor, which is then dst: what into holds, or undefined, outside of the part.
scratchpad_mode: user takes temporary memory from TensorFlow's allocator for each
  execution; library keeps buffers with the kernel. Safe on many threads, both.
)doc");
