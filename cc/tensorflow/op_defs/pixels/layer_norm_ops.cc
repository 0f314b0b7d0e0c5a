#include "cc/tensorflow/attrs/pixels/layer_norm_attrs.h"
#include "cc/tensorflow/attrs/pixels/normalization_attrs.h"
#include "tensorflow/core/framework/op.h"

using tensorflow::shape_inference::InferenceContext;

REGISTER_OP("BlockdnnLayerNorm")
    .Input("src: T")
    .Input("gamma: T")
    .Input("beta: T")
    .Output("dst: T")
    .Attr("T: {float} = DT_FLOAT")
    .Attr("channels: int >= 1")
    .Attr("epsilon: float")
    .Attr("layout: {'nhwc', 'nChw16c'}")
    .Attr("offsets: list(int) = [0, 0]")
    .SetShapeFn([](InferenceContext* c) {
      bd::LayerNormAttrs attrs;
      TF_RETURN_IF_ERROR(attrs.Read(c));
      bd::Plane plane;
      TF_RETURN_IF_ERROR(bd::LayerNormPlane(attrs, bd::InputShape(c, 0), bd::InputShape(c, 1),
                                            bd::InputShape(c, 2), &plane));
      bd::EltwiseAttrs same;
      same.layout = attrs.layout;
      same.channels = attrs.channels;
      bd::PartialTensorShape dst;
      TF_RETURN_IF_ERROR(bd::EltwiseShape(same, bd::InputShape(c, 0), {}, &dst));
      return bd::SetOutputShape(c, dst);
    })
    .Doc(R"doc(
Normalises each pixel over its channels:
(src - mean) / sqrt(variance + epsilon) * gamma + beta.

src: the activation in layout; nhwc stands for any axes with the channels behind them.
gamma: elements [offsets[0], offsets[0] + channels) of this tensor, whatever its shape.
beta: likewise, from offsets[1] on.
dst: of the shape of src.
channels: the logical number of channels.
)doc");

REGISTER_OP("BlockdnnLayerNormGrad")
    .Input("ddst: T")
    .Input("src: T")
    .Input("gamma: T")
    .Output("dsrc: T")
    .Output("dgamma: T")
    .Output("dbeta: T")
    .Attr("T: {float} = DT_FLOAT")
    .Attr("channels: int >= 1")
    .Attr("epsilon: float")
    .SetShapeFn(bd::NormalizationShapes</*kFirstRow=*/2>)
    .Doc(R"doc(
The gradients of BlockdnnLayerNorm of a blocked activation.

ddst: [N, blocks, .., 16], nCw16c, nChw16c or nCdhw16c.
src: of the shape of ddst.
gamma: [channels].
dsrc: of the shape of ddst.
dgamma: [channels].
dbeta: [channels].
channels: the logical number of channels of src.
)doc");
