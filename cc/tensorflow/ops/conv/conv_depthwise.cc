// BlockdnnConvDepthwise: a 1x1 convolution and the depthwise one that reads it; all tensors are
// nChw16c.
#include "cc/core/conv/conv_depthwise/conv_depthwise.h"

#include "cc/tensorflow/ops/conv/conv_attrs.h"

namespace bd {
namespace {

// The same status; a message says that it is about the depthwise half.
Status OfDepthwise(const Status& status) {
  if (status.ok()) return status;
  return Status(status.code(), absl::StrCat("depthwise: ", status.message()));
}

// The first half is the op's own attributes.
struct ConvDepthwise : WeightsOp<ConvAttrs, 2> {
  using Plan = ConvDepthwisePlan;

  ConvAttrs depthwise;

  static OpSignature Signature() {
    return {"BlockdnnConvDepthwise",
            {"src: T", "weights: T", "depthwise_weights: T", "args: num_args * T",
             "depthwise_args: num_depthwise_args * T"},
            {"dst: T"},
            "See bd.ops.conv_depthwise."};
  }

  void Visit(AttrVisitor& v) {
    v("T: {float} = DT_FLOAT", &dtype);
    v("num_args: int >= 0", &post_ops.num_args);
    v("num_depthwise_args: int >= 0", &depthwise.post_ops.num_args);
    v("channels: int >= 1", &channels);
    VisitWeights(v);
    v("depthwise_weights_shape: list(int)", &depthwise.weights_shape);
    v("depthwise_weights_offset: int >= 0 = 0", &depthwise.weights_offset);
    depthwise.window.Visit(v, /*has_dilations=*/true);
    v("post_ops: string = ''", &post_ops.text);
    v("depthwise_post_ops: string = ''", &depthwise.post_ops.text);
    v.Choice("algorithm", &algorithm,
             {{"auto", ConvAlgorithm::kAuto},
              {"direct", ConvAlgorithm::kDirect},
              {"paired", ConvAlgorithm::kFip}},
             "auto");
    VisitConstant(v);
    src_part.Visit("src_part", v);
    v("src_blocks: list(int) = []", &src_blocks);
    VisitScratchpadMode(v);
  }
  Status Check() {
    window.strides = {1, 1};
    TF_RETURN_IF_ERROR(CheckWeights());
    if (weights_shape[0] != 1 || weights_shape[1] != 1) {
      return Invalid(
          "weights_shape ", Text(weights_shape),
          " must be [1, 1, channels, output channels]; use BlockdnnConv for other windows");
    }
    depthwise.algorithm = algorithm;
    depthwise.constant_weights = constant_weights;
    depthwise.channels = depthwise.groups = oc;
    const std::vector<int64_t>& shape = depthwise.weights_shape;
    if (shape.size() != 4 || shape[2] != 1 || shape[3] != oc) {
      return Invalid("depthwise_weights_shape ", Text(shape), " must be [kh, kw, 1, ", oc,
                     "]: one filter for each output channel of weights");
    }
    TF_RETURN_IF_ERROR(CheckPartsAndChain());
    TF_RETURN_IF_ERROR(CheckSrcBlocks());
    TF_RETURN_IF_ERROR(OfDepthwise(depthwise.CheckWeights()));
    return OfDepthwise(depthwise.CheckPartsAndChain());
  }

  // Where the operands of the depthwise half start.
  int depthwise_args() const { return kArgs + post_ops.num_args; }

  // The tensor between the halves, and dst.
  Status BothShapes(const ShapeList& in, PartialTensorShape* between,
                    PartialTensorShape* dst) const {
    const ShapeList args = {in.begin() + kArgs, in.begin() + depthwise_args()};
    TF_RETURN_IF_ERROR(Shape(in[kSrc], in[kWeights], args, between));
    return OfDepthwise(
        depthwise.Shape(*between, in[kWeights + 1], From(in, depthwise_args()), dst));
  }
  Status Shapes(const ShapeList& in, ShapeList* dst) const {
    PartialTensorShape between;
    return BothShapes(in, &between, &dst->emplace_back());
  }
  Status MakePlan(const ShapeList& in, const PlanSite& site, Plan* plan) const {
    PartialTensorShape between, dst;
    TF_RETURN_IF_ERROR(BothShapes(in, &between, &dst));
    ConvDesc first, second;
    TF_RETURN_IF_ERROR(ConvAttrs::Describe(dtype, in[kSrc], &first));
    TF_RETURN_IF_ERROR(OfDepthwise(depthwise.Describe(dtype, between, &second)));
    first.changes_weights = second.changes_weights = site.changes_weights;
    return FromCore(MakeConvDepthwisePlan(first, second, ActiveIsa(), site.threads, plan));
  }

  static const ConvPlan& Half(const Plan& plan, int i) {
    return i == 0 ? plan.first : plan.depthwise;
  }
  WeightsUse weights_use(int i) const { return i == 0 ? use() : depthwise.use(); }
  const float* SrcOf(const Plan& plan, int i, OpKernelContext* ctx) const {
    return i == 0 ? Src(ctx, plan.first.desc.src) : nullptr;
  }
  PackRequest Weights(const Plan& plan, int i, OpKernelContext* ctx, WeightsPacker pack) const {
    return WeightsOfConv(Half(plan, i), pack, SrcOf(plan, i, ctx));
  }
  void Pack(const Plan& plan, int i, const void* plain, OpKernelContext* ctx, void* packed,
            ThreadPool& pool) const {
    PackConvWeights(Half(plan, i), static_cast<const float*>(plain), static_cast<float*>(packed),
                    pool, SrcOf(plan, i, ctx));
  }
  void Run(const Plan& plan, const LaunchMemory& m, ThreadPool& pool) const {
    ConvDepthwiseBuffers buffers;
    buffers.src = m.in<float>(kSrc, src_part.offset(plan.first.desc.src));
    buffers.first_packed = m.weights[0].as<float>();
    buffers.depthwise_packed = m.weights[1].as<float>();
    buffers.first_args = m.all_in<float>(kArgs);
    buffers.depthwise_args = m.all_in<float>(depthwise_args());
    buffers.dst = m.out<float>();
    buffers.scratch = m.scratch;
    RunConvDepthwise(plan, buffers, pool);
  }

  static void FillMemoryPlan(const Plan& plan, MemoryPlan* memory) {
    memory->algorithm = plan.algorithm_name();
    memory->packed_weights = plan.first.packed_bytes + plan.depthwise.packed_bytes;
    if (!plan.fused) return;
    memory->blocking = {{"step_rows", plan.step_rows},
                        {"ring_rows", plan.step_rows * plan.ring_steps},
                        {"group_blocks", plan.group_blocks}};
  }
  std::vector<int> reusable_inputs() const {
    std::vector<int> inputs;
    for (int arg : depthwise.post_ops.chain.ReusableInputs()) {
      inputs.push_back(depthwise_args() + arg);
    }
    return inputs;
  }
  BlockedTensors Blocked(const ShapeList& in) const {
    return WeightsOp::Blocked(in).Operands(depthwise.post_ops.chain, depthwise_args(),
                                           Layout::nChw16c, oc);
  }
};

const OpRegistration<ConvDepthwise> conv_depthwise_registration;

}  // namespace
}  // namespace bd
