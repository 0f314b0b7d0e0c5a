// BlockdnnConvVolume: TensorFlow's 3-D convolution as a ConvVolumeDesc.
#include <memory>
#include <string>

#include "cc/core/conv/conv_volume/conv_volume.h"
#include "cc/tensorflow/attrs/conv/conv_volume_attrs.h"
#include "cc/tensorflow/op_kernels/conv/conv_op.h"

namespace bd {
namespace {

constexpr int kSrc = ConvOpSpec::kSrc, kWeights = ConvOpSpec::kWeights,
              kFirstArg = ConvOpSpec::kFirstArg;

struct VolumeOpPlan {
  ConvVolumePlan conv;
  TensorShape dst_shape;
};

Status PlanVolumeOp(const ConvVolumeAttrs& attrs, const InputShapeList& inputs, int threads,
                    VolumeOpPlan* plan) {
  PartialTensorShape dst;
  TF_RETURN_IF_ERROR(ConvVolumeShape(attrs, inputs[kSrc], inputs[kWeights],
                                     {inputs.begin() + kFirstArg, inputs.end()}, &dst));
  TF_RETURN_IF_ERROR(ToFullShape(dst, &plan->dst_shape));
  VolumeWindows v;
  TF_RETURN_IF_ERROR(ResolveVolume(attrs, inputs[kSrc], &v));
  ConvVolumeDesc desc;
  desc.volumes = v.src.n / attrs.depth;
  desc.depth = attrs.depth;
  desc.out_depth = v.d.out;
  desc.kd = v.d.kernel;
  desc.sd = v.d.stride;
  desc.pad_front = v.d.pad_before;
  ConvDesc& s = desc.slice;
  s.ic = attrs.channels;
  s.ih = v.src.h;
  s.iw = v.src.w;
  s.oc = attrs.oc();
  s.oh = v.h.out;
  s.ow = v.w.out;
  s.kh = v.h.kernel;
  s.kw = v.w.kernel;
  s.sh = v.h.stride;
  s.sw = v.w.stride;
  s.pad_top = v.h.pad_before;
  s.pad_left = v.w.pad_before;
  s.src_layout = attrs.src_layout;
  s.dst_layout = attrs.dst_layout;
  s.algorithm = AlgorithmOf(attrs.algorithm);
  s.post_ops = attrs.post_ops.chain;
  return FromCore(MakeConvVolumePlan(desc, ActiveIsa(), threads, &plan->conv));
}

// For MemoryPlanRow.
Status PlanVolumeMemory(const NodeAttrs& node, const InputShapeList& inputs, int threads,
                        MemoryPlan* plan) {
  ConvVolumeAttrs attrs;
  TF_RETURN_IF_ERROR(attrs.Read(&node));
  VolumeOpPlan made;
  TF_RETURN_IF_ERROR(PlanVolumeOp(attrs, inputs, threads, &made));
  FillMemoryPlan(made.conv.conv, plan);
  plan->scratch = made.conv.scratch;
  return absl::OkStatus();
}

struct VolumeLaunch {
  std::shared_ptr<const VolumeOpPlan> plan;
  WeightsLease weights;

  const TensorShape& dst_shape(int = 0) const { return plan->dst_shape; }
  int64_t scratch_bytes() const { return plan->conv.scratch_bytes(); }
  absl::Span<const int> fixed_inputs() const {
    static constexpr int kFixed[] = {kWeights};
    return kFixed;
  }
  bool lasts() const { return weights.bytes_packed() == 0; }

  void Run(const LaunchMemory& memory, ThreadPool& pool) const {
    ConvBuffers buffers;
    buffers.src = memory.inputs[kSrc];
    buffers.packed = weights.data;
    buffers.args = memory.inputs + kFirstArg;
    buffers.dst = memory.dst();
    buffers.scratch = memory.scratch;
    RunConvVolume(plan->conv, buffers, pool);
  }
};

class ConvVolumeOp : public LaunchOpKernel<VolumeLaunch> {
 public:
  explicit ConvVolumeOp(OpKernelConstruction* ctx) : LaunchOpKernel(ctx) {
    OP_REQUIRES_OK(ctx, attrs_.Read(ctx));
    OP_REQUIRES_OK(ctx, scratchpad_.Read(ctx));
    weights_ = std::make_unique<WeightsCache>(attrs_.weights_offset, attrs_.constant_weights);
    for (int arg : attrs_.post_ops.chain.ReusableInputs()) {
      reusable_inputs_.push_back(kFirstArg + arg);
    }
  }

 protected:
  Status Resolve(OpKernelContext* ctx, VolumeLaunch* launch) override {
    TF_RETURN_IF_ERROR(plans_.Get(
        ctx,
        [&](VolumeOpPlan* made) {
          return PlanVolumeOp(attrs_, InputShapes(ctx, 0), pool().num_threads(), made);
        },
        &launch->plan));
    if (launch->dst_shape().num_elements() == 0) return absl::OkStatus();
    const ConvVolumePlan& conv = launch->plan->conv;
    const auto pack = [&](const void* plain, void* packed) {
      PackConvVolumeWeights(conv, static_cast<const float*>(plain), static_cast<float*>(packed),
                            pool());
    };
    const std::vector<int64_t>& w = attrs_.weights_shape;
    return weights_->Take(
        ctx, kWeights,
        {conv.conv.pack_key, {w[0], w[1], w[2], w[3], w[4]}, conv.conv.packed_bytes, 0, pack},
        &launch->weights);
  }

  BlockedTensors Blocked(OpKernelContext*) const override {
    BlockedTensors blocked;
    blocked.Input(kSrc, attrs_.src_layout, {attrs_.channels})
        .Operands(attrs_.post_ops.chain, kFirstArg, attrs_.dst_layout, attrs_.oc())
        .Output(0, attrs_.dst_layout, {attrs_.oc()});
    return blocked;
  }

  void ReleaseWeights() override { weights_->Release(); }

 private:
  std::string Describe(OpKernelContext* ctx, const VolumeLaunch& launch,
                       bool in_place) const override {
    const ConvVolumePlan& conv = launch.plan->conv;
    const ConvVolumeDesc& d = conv.desc;
    return absl::StrCat(
        "conv_volume ", IsaName(conv.conv.isa), " ", conv.conv.algorithm_name(), " ",
        LayoutName(d.slice.src_layout), ctx->input(kSrc).shape().DebugString(), "->",
        LayoutName(d.slice.dst_layout), launch.dst_shape().DebugString(), " depth ", d.depth, " k",
        d.kd, " s", d.sd, " p", d.pad_front, " ", WindowNote(d.slice), " scratch ",
        conv.scratch_bytes(), " ", scratchpad_.mode(), PacksNote(launch.weights.bytes_packed()),
        SumNote(d.slice.post_ops, in_place), " \"", d.slice.post_ops.ToString(), "\"");
  }

  ConvVolumeAttrs attrs_;
  PlanCache<VolumeOpPlan> plans_;
  std::unique_ptr<WeightsCache> weights_;
};

const MemoryPlanRow row("BlockdnnConvVolume", PlanVolumeMemory);

REGISTER_KERNEL_BUILDER(
    Name("BlockdnnConvVolume").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"),
    ConvVolumeOp);

}  // namespace
}  // namespace bd
