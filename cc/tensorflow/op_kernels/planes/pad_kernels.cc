// BlockdnnPad.
#include "cc/core/pad/pad.h"
#include "cc/tensorflow/attrs/planes/pad_attrs.h"
#include "cc/tensorflow/op_base/launch.h"

namespace bd {
namespace {

constexpr int kSrc = 0;

struct PadLaunch : LaunchDefaults {
  PadPlan plan;
  TensorShape shape;

  const TensorShape& dst_shape(int = 0) const { return shape; }
  void Run(const LaunchMemory& memory, ThreadPool& pool) const {
    RunPad(plan, memory.inputs[kSrc], memory.dst(), pool);
  }
};

class PadOp : public LaunchOpKernel<PadLaunch> {
 public:
  explicit PadOp(OpKernelConstruction* ctx) : LaunchOpKernel(ctx) {
    OP_REQUIRES_OK(ctx, attrs_.Read(ctx));
  }

 protected:
  // A plan takes less than to look for one.
  Status Resolve(OpKernelContext* ctx, PadLaunch* launch) override {
    Plane plane, dst_plane;
    TF_RETURN_IF_ERROR(PadPlanes(attrs_, InputShape(ctx, kSrc), &plane, &dst_plane));
    PartialTensorShape dst;
    TF_RETURN_IF_ERROR(MakeShape(Layout::nChw16c, attrs_.channels, dst_plane, &dst));
    TF_RETURN_IF_ERROR(ToFullShape(dst, &launch->shape));
    PadDesc desc;
    desc.planes = plane.n * ((attrs_.channels + 15) / 16);
    desc.height = plane.h;
    desc.width = plane.w;
    desc.top = attrs_.paddings[0];
    desc.bottom = attrs_.paddings[1];
    desc.left = attrs_.paddings[2];
    desc.right = attrs_.paddings[3];
    return FromCore(MakePadPlan(desc, &launch->plan));
  }

  BlockedTensors Blocked(OpKernelContext*) const override {
    return BlockedTensors()
        .Input(kSrc, Layout::nChw16c, {attrs_.channels})
        .Output(0, Layout::nChw16c, {attrs_.channels});
  }

  std::string Describe(OpKernelContext* ctx, const PadLaunch& launch, bool) const override {
    return absl::StrCat("pad nChw16c", ctx->input(kSrc).shape().DebugString(), "->",
                        launch.shape.DebugString());
  }

 private:
  PadAttrs attrs_;
};

REGISTER_KERNEL_BUILDER(
    Name("BlockdnnPad").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"), PadOp);

}  // namespace
}  // namespace bd
