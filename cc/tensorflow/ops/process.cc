// BlockdnnThreads: only TensorFlow's device knows how wide its pool is. BlockdnnFollow: in a graph,
// what a call of a function with live weights does before it runs.
#include "cc/tensorflow/op_base/op_utils.h"
#include "cc/tensorflow/weights/weights_watch.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"

REGISTER_OP("BlockdnnThreads")
    .Output("threads: int32")
    .SetIsStateful()  // another process has others: nothing to fold into a graph
    .SetShapeFn(tensorflow::shape_inference::ScalarShape)
    .Doc("The threads that ops run on here, the calling one included.");

REGISTER_OP("BlockdnnFollow")
    .Input("sign: resource")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::NoOutputs)
    .Doc(R"doc(
Where weights of a model have changed, folds them anew for the function that waits for this op.
It does nothing where the process has no such model, as one that serves a SavedModel has not.

sign: a variable, by whose address the process knows the function.
)doc");

namespace bd {
namespace {

class ThreadsOp : public PoolOpKernel {
 public:
  using PoolOpKernel::PoolOpKernel;

 private:
  void Execute(OpKernelContext* ctx, std::unique_ptr<PreparedLaunch>*) override {
    Tensor* threads;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({}), &threads));
    threads->scalar<int32_t>()() = pool().num_threads();
  }

  BlockedTensors Blocked(OpKernelContext*) const override { return {}; }
};

REGISTER_KERNEL_BUILDER(Name("BlockdnnThreads").Device(tensorflow::DEVICE_CPU), ThreadsOp);

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
