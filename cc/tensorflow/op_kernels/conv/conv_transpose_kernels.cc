// BlockdnnConvTranspose: TensorFlow's transposed convolution as a ConvTransposeDesc.
#include <memory>
#include <string>

#include "cc/core/conv/conv_transpose/conv_transpose.h"
#include "cc/tensorflow/attrs/conv/conv_transpose_attrs.h"
#include "cc/tensorflow/op_kernels/conv/conv_op.h"

namespace bd {
namespace {

constexpr int kSrc = ConvOpSpec::kSrc, kWeights = ConvOpSpec::kWeights,
              kFirstArg = ConvOpSpec::kFirstArg;

struct TransposeOpPlan {
  ConvTransposePlan conv;
  TensorShape dst_shape;
};

Status PlanTransposeOp(const ConvTransposeAttrs& attrs, const InputShapeList& inputs, int threads,
                       TransposeOpPlan* plan) {
  PartialTensorShape dst;
  TF_RETURN_IF_ERROR(ConvTransposeShape(attrs, inputs[kSrc], inputs[kWeights],
                                        {inputs.begin() + kFirstArg, inputs.end()}, &dst));
  TF_RETURN_IF_ERROR(ToFullShape(dst, &plan->dst_shape));
  Plane src, result;
  TF_RETURN_IF_ERROR(ReadPlane("src", inputs[kSrc], Layout::nChw16c,
                               attrs.src_part.tensor_channels(attrs.channels), &src));
  TF_RETURN_IF_ERROR(ConvTransposePlane(attrs, src, &result));
  ConvTransposeDesc desc;
  desc.n = src.n;
  desc.ic = attrs.channels;
  desc.ih = src.h;
  desc.iw = src.w;
  desc.oc = attrs.oc();
  desc.oh = result.h;
  desc.ow = result.w;
  desc.kh = attrs.weights_shape[0];
  desc.kw = attrs.weights_shape[1];
  desc.sh = attrs.strides[0];
  desc.sw = attrs.strides[1];
  desc.pad_top = attrs.crops[0];
  desc.pad_left = attrs.crops[2];
  desc.dst_layout = attrs.dst_layout;
  desc.algorithm = AlgorithmOf(attrs.algorithm);
  desc.post_ops = attrs.post_ops.chain;
  desc.src_image_blocks = attrs.src_part.image_blocks();
  desc.dst_image_blocks = attrs.dst_part.image_blocks();
  return FromCore(MakeConvTransposePlan(desc, ActiveIsa(), threads, &plan->conv));
}

// For MemoryPlanRow.
Status PlanTransposeMemory(const NodeAttrs& node, const InputShapeList& inputs, int threads,
                           MemoryPlan* plan) {
  ConvTransposeAttrs attrs;
  TF_RETURN_IF_ERROR(attrs.Read(&node));
  TransposeOpPlan made;
  TF_RETURN_IF_ERROR(PlanTransposeOp(attrs, inputs, threads, &made));
  plan->algorithm = made.conv.algorithm_name();
  plan->scratch = made.conv.scratch;
  plan->packed_weights = made.conv.packed_bytes;
  plan->blocking = {{"images", made.conv.images}};
  return absl::OkStatus();
}

struct TransposeLaunch {
  std::shared_ptr<const TransposeOpPlan> plan;
  WeightsLease weights;
  int64_t src_offset = 0, dst_offset = 0;  // of parts

  const TensorShape& dst_shape(int = 0) const { return plan->dst_shape; }
  int64_t scratch_bytes() const { return plan->conv.scratch_bytes(); }
  absl::Span<const int> fixed_inputs() const {
    static constexpr int kFixed[] = {kWeights};
    return kFixed;
  }
  bool lasts() const { return weights.bytes_packed() == 0; }

  void Run(const LaunchMemory& memory, ThreadPool& pool) const {
    ConvBuffers buffers;
    buffers.src = memory.inputs[kSrc] + src_offset;
    buffers.packed = weights.data;
    buffers.args = memory.inputs + kFirstArg;
    buffers.dst = memory.dst() + dst_offset;
    buffers.scratch = memory.scratch;
    RunConvTranspose(plan->conv, buffers, pool);
  }
};

class ConvTransposeOp : public LaunchOpKernel<TransposeLaunch> {
 public:
  explicit ConvTransposeOp(OpKernelConstruction* ctx) : LaunchOpKernel(ctx) {
    OP_REQUIRES_OK(ctx, attrs_.Read(ctx));
    OP_REQUIRES_OK(ctx, scratchpad_.Read(ctx));
    weights_ = std::make_unique<WeightsCache>(attrs_.weights_offset, attrs_.constant_weights);
    for (int arg : attrs_.post_ops.chain.ReusableInputs()) {
      reusable_inputs_.push_back(kFirstArg + arg);
    }
  }

 protected:
  Status Resolve(OpKernelContext* ctx, TransposeLaunch* launch) override {
    TF_RETURN_IF_ERROR(plans_.Get(
        ctx,
        [&](TransposeOpPlan* made) {
          return PlanTransposeOp(attrs_, InputShapes(ctx, 0), pool().num_threads(), made);
        },
        &launch->plan));
    if (launch->dst_shape().num_elements() == 0) return absl::OkStatus();
    const ConvTransposePlan& conv = launch->plan->conv;
    const ConvTransposeDesc& d = conv.desc;
    launch->src_offset = attrs_.src_part.offset(d.ih * d.iw);
    launch->dst_offset = attrs_.dst_part.offset(d.oh * d.ow);
    const float* src = InputData(ctx, kSrc) + launch->src_offset;
    const auto pack = [&](const void* plain, void* packed) {
      PackConvTransposeWeights(conv, static_cast<const float*>(plain), static_cast<float*>(packed),
                               pool(), src);
    };
    return weights_->Take(ctx, kWeights,
                          {conv.pack_key, {d.kh, d.kw, d.oc, d.ic}, conv.packed_bytes, 0, pack},
                          &launch->weights);
  }

  BlockedTensors Blocked(OpKernelContext*) const override {
    BlockedTensors blocked;
    blocked.Input(kSrc, attrs_.src_part, Layout::nChw16c, attrs_.channels)
        .Operands(attrs_.post_ops.chain, kFirstArg, attrs_.dst_layout, attrs_.oc())
        .Output(0, attrs_.dst_part, attrs_.dst_layout, attrs_.oc());
    return blocked;
  }

  bool has_into() const override { return attrs_.dst_part.has_into; }
  void ReleaseWeights() override { weights_->Release(); }

 private:
  std::string Describe(OpKernelContext* ctx, const TransposeLaunch& launch,
                       bool in_place) const override {
    const ConvTransposePlan& conv = launch.plan->conv;
    const ConvTransposeDesc& d = conv.desc;
    return absl::StrCat(
        "conv_transpose ", IsaName(conv.isa), " ", conv.algorithm_name(), " ",
        conv.convs[0].conv.algorithm_name(), " nChw16c", ctx->input(kSrc).shape().DebugString(),
        "->", LayoutName(d.dst_layout), launch.dst_shape().DebugString(), " k", d.kh, "x", d.kw,
        " s", d.sh, "x", d.sw, " p", d.pad_top, "x", d.pad_left, " scratch ", conv.scratch_bytes(),
        " ", scratchpad_.mode(), PacksNote(launch.weights.bytes_packed()),
        SumNote(d.post_ops, in_place && !attrs_.dst_part.has_into),
        PartNote(attrs_.src_part, attrs_.dst_part, in_place), " \"", d.post_ops.ToString(), "\"");
  }

  ConvTransposeAttrs attrs_;
  PlanCache<TransposeOpPlan> plans_;
  std::unique_ptr<WeightsCache> weights_;
};

const MemoryPlanRow row("BlockdnnConvTranspose", PlanTransposeMemory);

REGISTER_KERNEL_BUILDER(
    Name("BlockdnnConvTranspose").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"),
    ConvTransposeOp);

}  // namespace
}  // namespace bd
