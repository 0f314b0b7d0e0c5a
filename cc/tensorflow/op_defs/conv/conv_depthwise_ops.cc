#include "cc/tensorflow/attrs/shape_fns.h"
#include "tensorflow/core/framework/op.h"

using tensorflow::shape_inference::InferenceContext;

REGISTER_OP("BlockdnnConvDepthwise")
    .Input("src: T")
    .Input("weights: T")
    .Input("depthwise_weights: T")
    .Input("args: num_args * T")
    .Input("depthwise_args: num_depthwise_args * T")
    .Output("dst: T")
    .Attr("T: {float} = DT_FLOAT")
    .Attr("num_args: int >= 0")
    .Attr("num_depthwise_args: int >= 0")
    .Attr("channels: int >= 1")
    .Attr("weights_shape: list(int)")
    .Attr("weights_offset: int >= 0 = 0")
    .Attr("depthwise_weights_shape: list(int)")
    .Attr("depthwise_weights_offset: int >= 0 = 0")
    .Attr("strides: list(int) = [1, 1]")
    .Attr("dilations: list(int) = [1, 1]")
    .Attr("padding: {'SAME', 'VALID', 'EXPLICIT'}")
    .Attr("explicit_paddings: list(int) = []")
    .Attr("post_ops: string = ''")
    .Attr("depthwise_post_ops: string = ''")
    .Attr("algorithm: {'auto', 'direct', 'paired'} = 'auto'")
    .Attr("constant_weights: bool = false")
    .Attr(bd::kSrcPartAttr)
    .Attr(bd::kSrcBlocksAttr)
    .Attr(bd::kScratchpadModeAttr)
    .SetShapeFn([](InferenceContext* c) {
      bd::ConvDepthwiseAttrs attrs;
      TF_RETURN_IF_ERROR(attrs.Read(c));
      std::vector<bd::PartialTensorShape> args = bd::InputShapes(c, 3);
      const std::vector<bd::PartialTensorShape> depthwise_args(
          args.begin() + attrs.first.post_ops.num_args, args.end());
      args.resize(attrs.first.post_ops.num_args);
      bd::PartialTensorShape dst;
      TF_RETURN_IF_ERROR(bd::ConvDepthwiseShape(attrs, bd::InputShape(c, 0), bd::InputShape(c, 1),
                                                bd::InputShape(c, 2), args, depthwise_args, &dst));
      return bd::SetOutputShape(c, dst);
    })
    .Doc(R"doc(
A 1x1 convolution of stride 1, then a depthwise convolution of its result, each
followed by a chain of post-ops. The tensor between them stays in cache. The result
has the bits of BlockdnnConv called twice.

src: the activation, nChw16c.
weights: elements [weights_offset, weights_offset + prod(weights_shape)) of this
  tensor, whatever its shape, are the filter of the 1x1 in HWIO order.
depthwise_weights: likewise the filter of the depthwise convolution.
args: the operands that post_ops name #0, #1, ...
depthwise_args: the operands that depthwise_post_ops name #0, #1, ...
dst: the result, nChw16c.
channels: the logical number of channels of src.
weights_shape: [1, 1, channels, output channels].
depthwise_weights_shape: [kh, kw, 1, output channels].
strides: of the depthwise convolution: [height, width].
dilations: of the depthwise convolution: [height, width].
explicit_paddings: [top, bottom, left, right] of the depthwise convolution, only with
  padding = EXPLICIT. The padding is zero, whatever post_ops make of zero.
post_ops: entries joined by ';', applied to the result of the 1x1.
depthwise_post_ops: the same for the depthwise convolution.
algorithm: of the 1x1, as in BlockdnnConv.
constant_weights: both weights and the channel operands never change, so their
  packed form may be kept for good.
src_part, src_blocks: as in BlockdnnConv.
scratchpad_mode: see BlockdnnConv.
)doc");
