#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"

REGISTER_OP("BlockdnnCall")
    .Input("args: Tin")
    .Output("results: Tout")
    .Attr("Tin: list(type) >= 0")
    .Attr("Tout: list(type) >= 0")
    .Attr("f: func")
    .Attr("keeps_memory: bool = true")
    .SetIsStateful()  // the function reads variables
    .SetShapeFn(tensorflow::shape_inference::UnknownShape)
    .Doc(R"doc(
Runs a function's ops one after another in the thread that runs this op.

No thread is woken for the call, and nothing is scheduled between its ops. For
functions of ops that use all threads themselves; those with control flow,
asynchronous ops or references are InvalidArgument.

args: what the function takes, captures last.
results: what it returns.
f: the function; its body runs as it is, without TensorFlow's graph optimisers.
keeps_memory: memory of the tensors between its ops is kept from one run to the next, for
  one run at a time; runs on shapes that have come before are faster for it.
)doc");
