// BlockdnnConvDepthwise: a 1x1 convolution and the depthwise one behind it.
#include "cc/core/conv/conv_depthwise/conv_depthwise.h"
#include "cc/tensorflow/op_kernels/conv/conv_op.h"

namespace bd {
namespace {

struct ConvDepthwiseOpPlan {
  ConvDepthwisePlan pair;
  int first_args = 0;  // operands of the first chain

  const ConvPlan& half(int i) const { return i == 0 ? pair.first : pair.depthwise; }
  int64_t scratch_bytes() const { return pair.scratch_bytes(); }
};

class ConvDepthwise : public ConvOpSpec {
 public:
  static constexpr char kPrimitive[] = "conv_depthwise";
  static constexpr int kNumWeights = 2;
  using Plan = ConvDepthwiseOpPlan;

  template <typename Context>
  Status Read(Context* c) {
    return attrs_.Read(c);
  }
  const PackedWeightsAttrs& half(int i) const { return i == 0 ? attrs_.first : attrs_.depthwise; }
  Parts parts() const { return {attrs_.first.src_part, {}}; }

  BlockedTensors Blocked() const {
    const int64_t oc = attrs_.first.oc();
    return BlockedTensors()
        .Input(kSrc, attrs_.first.src_part, Layout::nChw16c, attrs_.first.channels)
        .Operands(attrs_.first.post_ops.chain, kFirstArg, Layout::nChw16c, oc)
        .Operands(attrs_.depthwise.post_ops.chain, kFirstArg + attrs_.first.post_ops.num_args,
                  Layout::nChw16c, oc)
        .Output(0, Layout::nChw16c, {oc});
  }

  Status MakePlan(const InputShapeList& inputs, bool changes_weights, int threads, Plan* plan,
                  TensorShape* dst_shape) const {
    InputShapeList first_args = From(inputs, kFirstArg);
    const InputShapeList depthwise_args = From(first_args, attrs_.first.post_ops.num_args);
    first_args.resize(attrs_.first.post_ops.num_args);
    ConvDesc first, depthwise;
    PartialTensorShape between, dst;
    TF_RETURN_IF_ERROR(
        DescribeConv(attrs_.first, inputs[kSrc], inputs[kWeights], first_args, &first, &between));
    TF_RETURN_IF_ERROR(ConvDepthwiseAttrs::OfDepthwise(DescribeConv(
        attrs_.depthwise, between, inputs[kWeights + 1], depthwise_args, &depthwise, &dst)));
    TF_RETURN_IF_ERROR(ToFullShape(dst, dst_shape));
    first.changes_weights = depthwise.changes_weights = changes_weights;
    plan->first_args = attrs_.first.post_ops.num_args;
    return FromCore(MakeConvDepthwisePlan(first, depthwise, ActiveIsa(), threads, &plan->pair));
  }

  static PackRequest Weights(const Plan& plan, int i, WeightsPacker pack) {
    return OneConvSpec::Weights(plan.half(i), 0, pack);
  }
  static void Pack(const Plan& plan, int i, const float* plain, const float* src, float* packed,
                   ThreadPool& pool) {
    PackConvWeights(plan.half(i), plain, packed, pool, src);
  }
  static void Run(const Plan& plan, const ConvOpMemory& memory, ThreadPool& pool) {
    ConvDepthwiseBuffers buffers;
    buffers.src = memory.src;
    buffers.first_packed = memory.weights[0].data;
    buffers.depthwise_packed = memory.weights[1].data;
    buffers.first_args = memory.args;
    buffers.depthwise_args = memory.args + plan.first_args;
    buffers.dst = memory.dst;
    buffers.scratch = memory.scratch;
    RunConvDepthwise(plan.pair, buffers, pool);
  }
  static void FillMemoryPlan(const Plan& plan, MemoryPlan* memory) {
    const ConvDepthwisePlan& pair = plan.pair;
    memory->algorithm = pair.algorithm_name();
    memory->scratch = pair.scratch;
    memory->packed_weights = pair.first.packed_bytes + pair.depthwise.packed_bytes;
    if (!pair.fused) return;
    memory->blocking = {{"step_rows", pair.step_rows},
                        {"ring_rows", pair.step_rows * pair.ring_steps},
                        {"group_blocks", pair.group_blocks}};
  }
  static ConvOpNote Note(const Plan& plan) {
    return {plan.pair.first.isa, plan.pair.algorithm_name(), Layout::nChw16c, Layout::nChw16c,
            WindowNote(plan.pair.depthwise.desc)};
  }

 private:
  static constexpr int kFirstArg = kWeights + kNumWeights;

  ConvDepthwiseAttrs attrs_;
};

const MemoryPlanRow row("BlockdnnConvDepthwise", PlanConvMemory<ConvDepthwise>);

REGISTER_KERNEL_BUILDER(
    Name("BlockdnnConvDepthwise").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"),
    ConvOp<ConvDepthwise>);

}  // namespace
}  // namespace bd
