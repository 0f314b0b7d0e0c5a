// BlockdnnThreads: only TensorFlow's device knows how wide its pool is.
#include "cc/tensorflow/op_base/op_utils.h"

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
