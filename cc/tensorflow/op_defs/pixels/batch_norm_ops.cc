#include "cc/tensorflow/attrs/pixels/fold_batch_norm_attrs.h"
#include "cc/tensorflow/attrs/pixels/normalization_attrs.h"
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
    .SetShapeFn(bd::NormalizationShapes</*kFirstRow=*/1>)
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
    .Input("beta: T")
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
    .Attr("clamp: {'', 'relu', 'relu6'} = ''")
    .SetShapeFn(bd::NormalizationShapes</*kFirstRow=*/2>)
    .Doc(R"doc(
The gradients of BlockdnnBatchNorm; dmean and dvariance are those of its other results.

clamp: what stands behind its dst; ddst is then the gradient of the clamp's result.
)doc");

REGISTER_OP("BlockdnnFoldBatchNorm")
    .Input("weights: T")
    .Input("bias: T")
    .Input("gamma: T")
    .Input("beta: T")
    .Input("mean: T")
    .Input("variance: T")
    .Output("folded: T")
    .Output("shift: T")
    .Attr("T: {float} = DT_FLOAT")
    .Attr("channels: int >= 1")
    .Attr("inner: int >= 1 = 1")
    .Attr("epsilon: float = 0.001")
    .SetShapeFn([](InferenceContext* c) {
      bd::FoldBatchNormAttrs attrs;
      TF_RETURN_IF_ERROR(attrs.Read(c));
      TF_RETURN_IF_ERROR(attrs.CheckShapes(bd::InputShapes(c, 0)));
      c->set_output(0, c->input(0));
      c->set_output(1, c->Vector(attrs.channels));
      return absl::OkStatus();
    })
    .Doc(R"doc(
Folds batch normalisation by given moments into the linear op before it: with
f = gamma / sqrt(variance + epsilon) these are f weights and f (bias - mean) + beta. While inputs
stay in the memory that they are in, so do the results.

weights: of the linear op, in memory [.., channels, inner].
bias: [channels], what is added to its result.
gamma: [channels].
beta: [channels].
mean: [channels].
variance: [channels].
folded: as weights.
shift: [channels].
channels: of its result.
inner: elements of a channel that lie side by side.
)doc");
