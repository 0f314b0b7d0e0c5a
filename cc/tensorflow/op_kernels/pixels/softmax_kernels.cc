// BlockdnnSoftmax.
#include "cc/core/softmax/softmax.h"
#include "cc/tensorflow/op_base/launch.h"

namespace bd {
namespace {

constexpr int kSrc = 0;

struct SoftmaxLaunch : LaunchDefaults {
  SoftmaxPlan plan;
  TensorShape shape;

  const TensorShape& dst_shape(int = 0) const { return shape; }
  void Run(const LaunchMemory& memory, ThreadPool& pool) const {
    RunSoftmax(plan, memory.inputs[kSrc], memory.dst(), pool);
  }
};

class SoftmaxOp : public LaunchOpKernel<SoftmaxLaunch> {
 public:
  explicit SoftmaxOp(OpKernelConstruction* ctx) : LaunchOpKernel(ctx) { reusable_inputs_ = {kSrc}; }

 protected:
  // A plan takes less than to look for one.
  Status Resolve(OpKernelContext* ctx, SoftmaxLaunch* launch) override {
    TF_RETURN_IF_ERROR(CheckSoftmaxShape(InputShape(ctx, kSrc)));
    launch->shape = ctx->input(kSrc).shape();
    const int last = launch->shape.dims() - 1;
    SoftmaxDesc desc;
    desc.channels = launch->shape.dim_size(last);
    desc.rows = 1;
    for (int axis = 0; axis < last; ++axis) desc.rows *= launch->shape.dim_size(axis);
    return FromCore(MakeSoftmaxPlan(desc, ActiveIsa(), &launch->plan));
  }

  BlockedTensors Blocked(OpKernelContext*) const override { return {}; }

  std::string Describe(OpKernelContext*, const SoftmaxLaunch& launch, bool) const override {
    return absl::StrCat("softmax ", IsaName(ActiveIsa()), " ", launch.shape.DebugString());
  }
};

REGISTER_KERNEL_BUILDER(
    Name("BlockdnnSoftmax").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"), SoftmaxOp);

}  // namespace
}  // namespace bd
