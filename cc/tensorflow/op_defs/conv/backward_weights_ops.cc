#include "cc/tensorflow/attrs/conv/backward_weights_attrs.h"
#include "tensorflow/core/framework/op.h"

using tensorflow::shape_inference::InferenceContext;

REGISTER_OP("BlockdnnConvBackwardWeights")
    .Input("src: T")
    .Input("ddst: T")
    .Output("dweights: T")
    .Attr("T: {float} = DT_FLOAT")
    .Attr("src_layout: {'nhwc', 'nChw16c'}")
    .Attr("dst_layout: {'nhwc', 'nChw16c'}")
    .Attr("channels: int >= 1")
    .Attr("weights_shape: list(int)")
    .Attr("groups: int >= 1 = 1")
    .Attr("strides: list(int) = [1, 1]")
    .Attr("dilations: list(int) = [1, 1]")
    .Attr("padding: {'SAME', 'VALID', 'EXPLICIT'}")
    .Attr("explicit_paddings: list(int) = []")
    .Attr(bd::kAlgorithmAttr)
    .SetShapeFn([](InferenceContext* c) {
      bd::BackwardWeightsAttrs attrs;
      TF_RETURN_IF_ERROR(attrs.Read(c));
      TF_RETURN_IF_ERROR(attrs.CheckShapes(bd::InputShape(c, 0), bd::InputShape(c, 1)));
      return bd::SetOutputShape(c, attrs.weights(), /*keeps_batch=*/false);
    })
    .Doc(R"doc(
The gradient of a 2-D convolution with respect to its weights.

src: what the convolution reads, in src_layout.
ddst: the gradient of its result, in dst_layout.
dweights: [kh, kw, channels / groups, output channels].
channels: the logical number of channels of src.
weights_shape: the shape of dweights.
groups: 1, or in nChw16c tensors as many as channels and output channels, or such that each has
  whole blocks of 16 of both.
strides: [height, width].
dilations: [height, width].
explicit_paddings: [top, bottom, left, right], only with padding = EXPLICIT.
algorithm: of the convolutions that its own gradient is made of; it sums products itself.
)doc");
