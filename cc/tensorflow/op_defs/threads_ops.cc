#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"

REGISTER_OP("BlockdnnThreads")
    .Output("threads: int32")
    .SetIsStateful()  // another process has others: nothing to fold into a graph
    .SetShapeFn(tensorflow::shape_inference::ScalarShape)
    .Doc(R"doc(
The threads that ops run on here, the calling one included.
)doc");
