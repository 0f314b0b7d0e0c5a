// BlockdnnThreads: only TensorFlow's device knows how wide its pool is.
#include "cc/tensorflow/op_base/op_utils.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"

REGISTER_OP("BlockdnnThreads")
    .Output("threads: int32")
    .SetIsStateful()  // another process has others: nothing to fold into a graph
    .SetShapeFn(tensorflow::shape_inference::ScalarShape)
    .Doc("The threads that ops run on here, the calling one included.");

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

}  // namespace
}  // namespace bd
