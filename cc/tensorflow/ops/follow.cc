// BlockdnnFollow: in a graph, what a call of a function with live weights does before it runs.
#include "cc/tensorflow/weights/weights_watch.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"

REGISTER_OP("BlockdnnFollow")
    .Input("sign: resource")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::NoOutputs)
    .Doc(R"doc(
Where weights of a model have changed, folds them anew for the function that waits for this op.
It does nothing where the process has no such model, as behind a SavedModel.

sign: a variable, by whose address the process knows the function.
)doc");

namespace bd {
namespace {

class FollowOp : public tensorflow::OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(tensorflow::OpKernelContext* ctx) override {
    WeightsWatch::Variable sign;
    OP_REQUIRES_OK(ctx,
                   tensorflow::LookupResource(ctx, tensorflow::HandleFromInput(ctx, 0), &sign));
    const char* const error = Follow(sign.get());
    OP_REQUIRES(ctx, error == nullptr, absl::FailedPreconditionError(error));
  }
};

REGISTER_KERNEL_BUILDER(Name("BlockdnnFollow").Device(tensorflow::DEVICE_CPU), FollowOp);

}  // namespace
}  // namespace bd
