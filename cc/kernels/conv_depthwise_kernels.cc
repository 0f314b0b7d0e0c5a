// BlockdnnConvDepthwise: a 1x1 convolution and the depthwise one behind it.
#include <memory>
#include <string>
#include <vector>

#include "cc/base/verbose.h"
#include "cc/core/conv/conv_pair.h"
#include "cc/kernels/conv_op.h"

namespace bd {
namespace {

constexpr int kSrc = 0, kWeights = 1, kDepthwiseWeights = 2, kFirstArg = 3;

struct PairOpPlan {
  ConvPairPlan pair;
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
  return FromCore(MakeConvPairPlan(first, depthwise, ActiveIsa(), threads, &plan->pair));
}

// For MemoryPlanRow.
Status PlanPairMemory(const NodeAttrs& node, const InputShapeList& inputs, int threads,
                      MemoryPlan* plan) {
  ConvDepthwiseAttrs attrs;
  TF_RETURN_IF_ERROR(attrs.Read(&node));
  PairOpPlan made;
  TF_RETURN_IF_ERROR(PlanPairOp(attrs, inputs, threads, &made));
  const ConvPairPlan& pair = made.pair;
  plan->algorithm = pair.algorithm_name();
  plan->scratch = pair.scratch;
  const int64_t floats = pair.first.packed_floats + pair.depthwise.packed_floats;
  plan->packed_weights = floats * static_cast<int64_t>(sizeof(float));
  if (pair.fused) {
    plan->blocking = {{"step_rows", pair.step_rows},
                      {"ring_rows", pair.step_rows * pair.ring_steps},
                      {"group_blocks", pair.first.packing.group_blocks}};
  }
  return absl::OkStatus();
}

class ConvDepthwiseOp : public PoolOpKernel {
 public:
  explicit ConvDepthwiseOp(OpKernelConstruction* ctx) : PoolOpKernel(ctx) {
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
  void Execute(OpKernelContext* ctx) override {
    std::shared_ptr<const PairOpPlan> plan;
    OP_REQUIRES_OK(ctx, plans_.Get(
                            ctx,
                            [&](PairOpPlan* made) {
                              return PlanPairOp(attrs_, InputShapes(ctx, 0), pool().num_threads(),
                                                made);
                            },
                            &plan));
    const ConvPairPlan& pair = plan->pair;
    Tensor* dst;
    int reused;
    OP_REQUIRES_OK(ctx, AllocateDst(ctx, reusable_inputs_, plan->dst_shape, &dst, &reused));
    if (dst->NumElements() == 0) return;
    const float* src = InputData(ctx, kSrc);
    WeightsLease first, depthwise;
    OP_REQUIRES_OK(ctx, first_weights_->Take(ctx, kWeights, src, pair.first, pool(), &first));
    OP_REQUIRES_OK(ctx, depthwise_weights_->Take(ctx, kDepthwiseWeights, src, pair.depthwise,
                                                 pool(), &depthwise));
    ScratchpadMemory scratchpad;
    OP_REQUIRES_OK(ctx, scratchpad_.Take(ctx, pair.scratch_bytes(), &scratchpad));

    const ArgPointers args(ctx, kFirstArg);
    ConvPairBuffers buffers;
    buffers.src = src;
    buffers.first_packed = first.data;
    buffers.depthwise_packed = depthwise.data;
    buffers.first_args = args.data();
    buffers.depthwise_args = args.data() + attrs_.first.post_ops.num_args;
    buffers.dst = static_cast<float*>(dst->data());
    buffers.scratch = scratchpad.data();
    const auto notes = [&] {
      return absl::StrCat(" ", scratchpad_.mode(),
                          PacksNote(first.bytes_packed() + depthwise.bytes_packed()),
                          SumNote(pair.depthwise.desc.post_ops, reused >= 0));
    };
    RunLogged([&] { return LogLine(ctx, *plan, notes()); },
              [&] { RunConvPair(pair, buffers, pool()); });
  }

  BlockedTensors Blocked(OpKernelContext*) const override {
    const int64_t oc = attrs_.first.oc();
    return BlockedTensors()
        .Input(kSrc, Layout::nChw16c, {attrs_.first.channels})
        .Operands(attrs_.first.post_ops.chain, kFirstArg, Layout::nChw16c, oc)
        .Operands(attrs_.depthwise.post_ops.chain, FirstDepthwiseArg(), Layout::nChw16c, oc)
        .Output(0, Layout::nChw16c, {oc});
  }

 private:
  int FirstDepthwiseArg() const { return kFirstArg + attrs_.first.post_ops.num_args; }

  // `notes` say how this execution got its memory.
  static std::string LogLine(OpKernelContext* ctx, const PairOpPlan& plan,
                             const std::string& notes) {
    const ConvDesc& first = plan.pair.first.desc;
    const ConvDesc& depthwise = plan.pair.depthwise.desc;
    return absl::StrCat("conv_depthwise ", IsaName(plan.pair.first.isa), " ",
                        plan.pair.algorithm_name(), " nChw16c",
                        ctx->input(kSrc).shape().DebugString(), "->nChw16c",
                        plan.dst_shape.DebugString(), " ", WindowNote(depthwise), " scratch ",
                        plan.pair.scratch_bytes(), notes, " \"", first.post_ops.ToString(), "\" \"",
                        depthwise.post_ops.ToString(), "\"");
  }

  ConvDepthwiseAttrs attrs_;
  std::vector<int> reusable_inputs_;  // operands of sums, whose memory dst may take
  PlanCache<PairOpPlan> plans_;
  std::unique_ptr<WeightsCache> first_weights_, depthwise_weights_;
  Scratchpad scratchpad_;
};

const MemoryPlanRow row("BlockdnnConvDepthwise", PlanPairMemory);

REGISTER_KERNEL_BUILDER(
    Name("BlockdnnConvDepthwise").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"),
    ConvDepthwiseOp);

}  // namespace
}  // namespace bd
