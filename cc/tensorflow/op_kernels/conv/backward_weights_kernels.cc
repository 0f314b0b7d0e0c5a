// BlockdnnConvBackwardWeights.
#include "cc/core/conv/backward_weights/backward_weights.h"
#include "cc/tensorflow/attrs/conv/backward_weights_attrs.h"
#include "cc/tensorflow/op_kernels/conv/conv_op.h"

namespace bd {
namespace {

enum { kSrc, kDdst };

struct BackwardWeightsLaunch : LaunchDefaults {
  std::shared_ptr<const BackwardWeightsPlan> plan;
  TensorShape shape;

  const TensorShape& dst_shape(int = 0) const { return shape; }
  int64_t scratch_bytes() const { return plan->scratch.bytes(); }
  void Run(const LaunchMemory& memory, ThreadPool& pool) const {
    RunBackwardWeights(
        *plan, {memory.inputs[kSrc], memory.inputs[kDdst], memory.dst(), memory.scratch}, pool);
  }
};

Status PlanBackwardWeights(const BackwardWeightsAttrs& attrs, const PartialTensorShape& src,
                           const PartialTensorShape& ddst, int threads, BackwardWeightsPlan* plan) {
  TF_RETURN_IF_ERROR(attrs.CheckShapes(src, ddst));
  ConvDesc desc;
  PartialTensorShape dst;
  TF_RETURN_IF_ERROR(DescribeConv(attrs.conv, src, attrs.weights(), {}, &desc, &dst));
  return FromCore(MakeBackwardWeightsPlan(desc, ActiveIsa(), threads, plan));
}

Status PlanMemory(const NodeAttrs& node, const std::vector<PartialTensorShape>& inputs, int threads,
                  MemoryPlan* plan) {
  BackwardWeightsAttrs attrs;
  TF_RETURN_IF_ERROR(attrs.Read(&node));
  BackwardWeightsPlan made;
  TF_RETURN_IF_ERROR(PlanBackwardWeights(attrs, inputs[kSrc], inputs[kDdst], threads, &made));
  plan->algorithm = "direct";
  plan->scratch = made.scratch;
  return absl::OkStatus();
}

class BackwardWeightsOp : public LaunchOpKernel<BackwardWeightsLaunch> {
 public:
  explicit BackwardWeightsOp(OpKernelConstruction* ctx) : LaunchOpKernel(ctx) {
    OP_REQUIRES_OK(ctx, attrs_.Read(ctx));
  }

 protected:
  Status Resolve(OpKernelContext* ctx, BackwardWeightsLaunch* launch) override {
    TF_RETURN_IF_ERROR(ToFullShape(attrs_.weights(), &launch->shape));
    return plans_.Get(
        ctx,
        [&](BackwardWeightsPlan* made) {
          return PlanBackwardWeights(attrs_, InputShape(ctx, kSrc), InputShape(ctx, kDdst),
                                     pool().num_threads(), made);
        },
        &launch->plan);
  }

  BlockedTensors Blocked(OpKernelContext*) const override {
    return BlockedTensors()
        .Input(kSrc, ChannelPart(), attrs_.conv.src_layout, attrs_.conv.channels)
        .Input(kDdst, ChannelPart(), attrs_.conv.dst_layout, attrs_.conv.oc());
  }

  std::string Describe(OpKernelContext* ctx, const BackwardWeightsLaunch& launch,
                       bool) const override {
    const ConvDesc& d = launch.plan->desc;
    return absl::StrCat("conv_backward_weights ", IsaName(launch.plan->isa), " ",
                        LayoutName(d.src.layout()), ctx->input(kSrc).shape().DebugString(), " ",
                        LayoutName(d.dst.layout()), ctx->input(kDdst).shape().DebugString(), " ",
                        WindowNote(d), " g", d.groups, " scratch ", launch.scratch_bytes());
  }

 private:
  BackwardWeightsAttrs attrs_;
  PlanCache<BackwardWeightsPlan> plans_;
};

const MemoryPlanRow row("BlockdnnConvBackwardWeights", PlanMemory);

REGISTER_KERNEL_BUILDER(
    Name("BlockdnnConvBackwardWeights").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"),
    BackwardWeightsOp);

}  // namespace
}  // namespace bd
