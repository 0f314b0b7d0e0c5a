#include "cc/tensorflow/attrs/conv/conv_volume_attrs.h"
#include "tensorflow/core/framework/op.h"

REGISTER_OP("BlockdnnConvVolume")
    .Input("src: T")
    .Input("weights: T")
    .Input("args: num_args * T")
    .Output("dst: T")
    .Attr("T: {float} = DT_FLOAT")
    .Attr("num_args: int >= 0")
    .Attr("src_layout: {'nhwc', 'nChw16c'}")
    .Attr("dst_layout: {'nhwc', 'nChw16c'}")
    .Attr("channels: int >= 1")
    .Attr("depth: int >= 1")
    .Attr("weights_shape: list(int)")
    .Attr("weights_offset: int >= 0 = 0")
    .Attr("strides: list(int) = [1, 1, 1]")
    .Attr("padding: {'SAME', 'VALID'}")
    .Attr("post_ops: string = ''")
    .Attr(bd::kAlgorithmAttr)
    .Attr("constant_weights: bool = false")
    .Attr(bd::kScratchpadModeAttr)
    .SetShapeFn(bd::PackedWeightsOpShape<bd::ConvVolumeAttrs, bd::ConvVolumeShape, false>)
    .Doc(R"doc(
3-D convolution of volumes whose slices are images, followed by a chain of post-ops.

src: the slices of all volumes in src_layout, [volumes * depth, ...].
weights: elements [weights_offset, weights_offset + prod(weights_shape)) of this
  tensor, whatever its shape, are the filter in the order of tf.nn.conv3d.
args: the operands that post_ops name #0, #1, ...
dst: the slices of the results in dst_layout.
channels: the logical number of channels of src.
depth: slices of a volume.
weights_shape: [kd, kh, kw, channels, output channels].
strides: [depth, height, width].
post_ops: entries joined by ';', for example "binary(add,channel,#0);eltwise(relu)".
algorithm: of the 2-D convolution that it is, as in BlockdnnConv.
constant_weights: the weights and the channel operands never change, so their
  packed form may be kept for good.
scratchpad_mode: user takes temporary memory from TensorFlow's allocator for each
  execution; library keeps buffers with the kernel. Safe on many threads, both.
)doc");
