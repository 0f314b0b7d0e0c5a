// BlockdnnConvDepthwise: a 1x1 convolution and the depthwise one behind it.
#include <memory>
#include <string>
#include <vector>

#include "cc/core/conv/conv_depthwise/conv_depthwise.h"
#include "cc/tensorflow/op_kernels/conv/conv_op.h"

namespace bd {
namespace {

constexpr int kSrc = 0, kWeights = 1, kDepthwiseWeights = 2, kFirstArg = 3;

struct PairOpPlan {
  ConvDepthwisePlan pair;
  TensorShape dst_shape;
};

Status PlanPairOp(const ConvDepthwiseAttrs& attrs, const InputShapeList& inputs, int threads,
                  PairOpPlan* plan) {
  const auto depthwise_args = inputs.begin() + kFirstArg + attrs.first.post_ops.num_args;
  ConvDesc first, depthwise;
  PartialTensorShape between, dst;
  TF_RETURN_IF_ERROR(DescribeConv(attrs.first, inputs[kSrc], inputs[kWeights],
                                  {inputs.begin() + kFirstArg, depthwise_args}, &first, &between));
  TF_RETURN_IF_ERROR(ConvDepthwiseAttrs::OfDepthwise(
      DescribeConv(attrs.depthwise, between, inputs[kDepthwiseWeights],
                   {depthwise_args, inputs.end()}, &depthwise, &dst)));
  TF_RETURN_IF_ERROR(ToFullShape(dst, &plan->dst_shape));
  return FromCore(MakeConvDepthwisePlan(first, depthwise, ActiveIsa(), threads, &plan->pair));
}

// For MemoryPlanRow.
Status PlanPairMemory(const NodeAttrs& node, const InputShapeList& inputs, int threads,
                      MemoryPlan* plan) {
  ConvDepthwiseAttrs attrs;
  TF_RETURN_IF_ERROR(attrs.Read(&node));
  PairOpPlan made;
  TF_RETURN_IF_ERROR(PlanPairOp(attrs, inputs, threads, &made));
  const ConvDepthwisePlan& pair = made.pair;
  plan->algorithm = pair.algorithm_name();
  plan->scratch = pair.scratch;
  plan->packed_weights = pair.first.packed_bytes + pair.depthwise.packed_bytes;
  if (pair.fused) {
    plan->blocking = {{"step_rows", pair.step_rows},
                      {"ring_rows", pair.step_rows * pair.ring_steps},
                      {"group_blocks", pair.group_blocks}};
  }
  return absl::OkStatus();
}

struct PairLaunch {
  std::shared_ptr<const PairOpPlan> plan;
  WeightsLease first, depthwise;
  int first_depthwise_arg = 0;
  int64_t src_offset = 0;  // of a part

  const TensorShape& dst_shape(int = 0) const { return plan->dst_shape; }
  int64_t scratch_bytes() const { return plan->pair.scratch_bytes(); }
  absl::Span<const int> fixed_inputs() const {
    static constexpr int kFixed[] = {kWeights, kDepthwiseWeights};
    return kFixed;
  }
  int64_t bytes_packed() const { return first.bytes_packed() + depthwise.bytes_packed(); }
  bool lasts() const { return bytes_packed() == 0; }

  void Run(const LaunchMemory& memory, ThreadPool& pool) const {
    ConvDepthwiseBuffers buffers;
    buffers.src = memory.inputs[kSrc] + src_offset;
    buffers.first_packed = first.data;
    buffers.depthwise_packed = depthwise.data;
    buffers.first_args = memory.inputs + kFirstArg;
    buffers.depthwise_args = memory.inputs + first_depthwise_arg;
    buffers.dst = memory.dst();
    buffers.scratch = memory.scratch;
    RunConvDepthwise(plan->pair, buffers, pool);
  }
};

class ConvDepthwiseOp : public LaunchOpKernel<PairLaunch> {
 public:
  explicit ConvDepthwiseOp(OpKernelConstruction* ctx) : LaunchOpKernel(ctx) {
    OP_REQUIRES_OK(ctx, attrs_.Read(ctx));
    OP_REQUIRES_OK(ctx, scratchpad_.Read(ctx));
    const auto cache = [](const ConvAttrs& half) {
      return std::make_unique<WeightsCache>(half.weights_offset, half.constant_weights);
    };
    first_weights_ = cache(attrs_.first);
    depthwise_weights_ = cache(attrs_.depthwise);
    for (int arg : attrs_.depthwise.post_ops.chain.ReusableInputs()) {
      reusable_inputs_.push_back(FirstDepthwiseArg() + arg);
    }
  }

 protected:
  Status Resolve(OpKernelContext* ctx, PairLaunch* launch) override {
    TF_RETURN_IF_ERROR(plans_.Get(
        ctx,
        [&](PairOpPlan* made) {
          return PlanPairOp(attrs_, InputShapes(ctx, 0), pool().num_threads(), made);
        },
        &launch->plan));
    launch->first_depthwise_arg = FirstDepthwiseArg();
    if (launch->dst_shape().num_elements() == 0) return absl::OkStatus();
    const ConvDepthwisePlan& pair = launch->plan->pair;
    launch->src_offset = attrs_.first.src_part.offset(pair.first.desc.ih * pair.first.desc.iw);
    const float* src = InputData(ctx, kSrc);
    TF_RETURN_IF_ERROR(
        TakeWeights(ctx, kWeights, src, pair.first, pool(), first_weights_.get(), &launch->first));
    return TakeWeights(ctx, kDepthwiseWeights, src, pair.depthwise, pool(),
                       depthwise_weights_.get(), &launch->depthwise);
  }

  BlockedTensors Blocked(OpKernelContext*) const override {
    const int64_t oc = attrs_.first.oc();
    return BlockedTensors()
        .Input(kSrc, attrs_.first.src_part, Layout::nChw16c, attrs_.first.channels)
        .Operands(attrs_.first.post_ops.chain, kFirstArg, Layout::nChw16c, oc)
        .Operands(attrs_.depthwise.post_ops.chain, FirstDepthwiseArg(), Layout::nChw16c, oc)
        .Output(0, Layout::nChw16c, {oc});
  }

  void ReleaseWeights() override {
    first_weights_->Release();
    depthwise_weights_->Release();
  }

 private:
  int FirstDepthwiseArg() const { return kFirstArg + attrs_.first.post_ops.num_args; }

  std::string Describe(OpKernelContext* ctx, const PairLaunch& launch,
                       bool in_place) const override {
    const ConvDepthwisePlan& pair = launch.plan->pair;
    const ConvDesc &first = pair.first.desc, &depthwise = pair.depthwise.desc;
    return absl::StrCat(
        "conv_depthwise ", IsaName(pair.first.isa), " ", pair.algorithm_name(), " nChw16c",
        ctx->input(kSrc).shape().DebugString(), "->nChw16c", launch.dst_shape().DebugString(), " ",
        WindowNote(depthwise), " scratch ", pair.scratch_bytes(), " ", scratchpad_.mode(),
        PacksNote(launch.bytes_packed()), SumNote(depthwise.post_ops, in_place), " \"",
        first.post_ops.ToString(), "\" \"", depthwise.post_ops.ToString(), "\"");
  }

  ConvDepthwiseAttrs attrs_;
  PlanCache<PairOpPlan> plans_;
  std::unique_ptr<WeightsCache> first_weights_, depthwise_weights_;
};

const MemoryPlanRow row("BlockdnnConvDepthwise", PlanPairMemory);

REGISTER_KERNEL_BUILDER(
    Name("BlockdnnConvDepthwise").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"),
    ConvDepthwiseOp);

}  // namespace
}  // namespace bd
