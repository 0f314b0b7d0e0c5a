#include "cc/tensorflow/attrs/shape_fns.h"
#include "tensorflow/core/framework/op.h"

using tensorflow::shape_inference::InferenceContext;

REGISTER_OP("BlockdnnSoftmax")
    .Input("src: T")
    .Output("dst: T")
    .Attr("T: {float} = DT_FLOAT")
    .SetShapeFn([](InferenceContext* c) {
      TF_RETURN_IF_ERROR(bd::CheckSoftmaxShape(bd::InputShape(c, 0)));
      c->set_output(0, c->input(0));
      return absl::OkStatus();
    })
    .Doc(R"doc(
exp(src) over its sum along the last axis.

src: a plain tensor of rank 1 or more.
dst: of the shape of src; each of its rows sums to 1.
)doc");
