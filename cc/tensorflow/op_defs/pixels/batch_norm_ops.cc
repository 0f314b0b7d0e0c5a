#include "cc/tensorflow/attrs/pixels/batch_norm_attrs.h"
#include "tensorflow/core/framework/op.h"

using tensorflow::shape_inference::InferenceContext;

REGISTER_OP("BlockdnnBatchNorm")
    .Input("src: T")
    .Input("gamma: T")
    .Input("beta: T")
    .Output("dst: T")
    .Output("mean: T")
    .Output("variance: T")
    .Attr("T: {float} = DT_FLOAT")
    .Attr("channels: int >= 1")
    .Attr("epsilon: float = 0.001")
    .SetShapeFn([](InferenceContext* c) {
      bd::BatchNormAttrs attrs;
      TF_RETURN_IF_ERROR(attrs.Read(c));
      TF_RETURN_IF_ERROR(attrs.CheckShapes(bd::InputShapes(c, 0), /*first_row=*/1));
      c->set_output(0, c->input(0));
      for (int i : {1, 2}) c->set_output(i, c->Vector(attrs.channels));
      return absl::OkStatus();
    })
    .Doc(R"doc(
Batch normalisation of a training step: dst = gamma (src - mean) / sqrt(variance + epsilon) + beta
with the moments of each channel over all images and pixels.

src: [N, blocks, .., 16], nCw16c, nChw16c or nCdhw16c.
gamma: [channels].
beta: [channels].
dst: as src.
mean: [channels].
variance: [channels], of all values.
channels: the logical number of channels of src.
)doc");

REGISTER_OP("BlockdnnBatchNormGrad")
    .Input("ddst: T")
    .Input("src: T")
    .Input("gamma: T")
    .Input("mean: T")
    .Input("variance: T")
    .Input("dmean: T")
    .Input("dvariance: T")
    .Output("dsrc: T")
    .Output("dgamma: T")
    .Output("dbeta: T")
    .Attr("T: {float} = DT_FLOAT")
    .Attr("channels: int >= 1")
    .Attr("epsilon: float = 0.001")
    .SetShapeFn([](InferenceContext* c) {
      bd::BatchNormAttrs attrs;
      TF_RETURN_IF_ERROR(attrs.Read(c));
      TF_RETURN_IF_ERROR(attrs.CheckShapes(bd::InputShapes(c, 0), /*first_row=*/2));
      c->set_output(0, c->input(0));
      for (int i : {1, 2}) c->set_output(i, c->Vector(attrs.channels));
      return absl::OkStatus();
    })
    .Doc(R"doc(
The gradients of BlockdnnBatchNorm; dmean and dvariance are those of its other results.
)doc");
