#include <vector>

#include "cc/tensorflow/attrs/attrs.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"

namespace {

using tensorflow::PartialTensorShape;
using tensorflow::shape_inference::InferenceContext;

// The function is not at hand here, so whoever writes the node says what it knows.
absl::Status RegionShapes(InferenceContext* c) {
  std::vector<PartialTensorShape> shapes;
  TF_RETURN_IF_ERROR(c->GetAttr("output_shapes", &shapes));
  if (shapes.empty()) return tensorflow::shape_inference::UnknownShape(c);
  if (static_cast<int>(shapes.size()) != c->num_outputs()) {
    return bd::Invalid("output_shapes must have ", c->num_outputs(), " shapes or none, got ",
                       shapes.size());
  }
  for (int i = 0; i < c->num_outputs(); ++i) {
    tensorflow::shape_inference::ShapeHandle shape;
    TF_RETURN_IF_ERROR(c->MakeShapeFromPartialTensorShape(shapes[i], &shape));
    c->set_output(i, shape);
  }
  return absl::OkStatus();
}

}  // namespace

REGISTER_OP("BlockdnnRegion")
    .Input("args: Tin")
    .Output("results: Tout")
    .Attr("Tin: list(type) >= 0")
    .Attr("Tout: list(type) >= 0")
    .Attr("f: func")
    .Attr("output_shapes: list(shape) = []")
    .Attr("keeps_memory: bool = true")
    .SetShapeFn(RegionShapes)
    .Doc(R"doc(
Runs a function's ops one after another in the thread that runs this op.

No thread is woken for the call, and nothing is scheduled between its ops. For
functions of ops that use all threads themselves; those with control flow,
asynchronous ops or references are InvalidArgument.

args: what the function takes.
results: what it returns.
f: the function; its body is run as it is. It is a pure function of its arguments.
output_shapes: static shapes of the results, or nothing.
keeps_memory: memory of the tensors between its ops is kept from one run to the next, for as
  many runs at once as there are threads; runs on shapes that have come before are faster
  for it.
)doc");
