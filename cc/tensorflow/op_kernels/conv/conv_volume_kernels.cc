// BlockdnnConvVolume: TensorFlow's 3-D convolution as a ConvVolumeDesc.
#include "cc/core/conv/conv_volume/conv_volume.h"
#include "cc/tensorflow/attrs/conv/conv_volume_attrs.h"
#include "cc/tensorflow/op_kernels/conv/conv_op.h"

namespace bd {
namespace {

class ConvVolume : public ConvOpSpec {
 public:
  static constexpr char kPrimitive[] = "conv_volume";
  static constexpr int kNumWeights = 1;
  using Plan = ConvVolumePlan;

  template <typename Context>
  Status Read(Context* c) {
    return attrs_.Read(c);
  }
  const PackedWeightsAttrs& half(int) const { return attrs_; }

  BlockedTensors Blocked() const {
    BlockedTensors blocked;
    blocked.Input(kSrc, attrs_.src_layout, {attrs_.channels})
        .Operands(attrs_.post_ops.chain, kWeights + 1, attrs_.dst_layout, attrs_.oc())
        .Output(0, attrs_.dst_layout, {attrs_.oc()});
    return blocked;
  }

  Status MakePlan(const InputShapeList& inputs, bool changes_weights, int threads, Plan* plan,
                  TensorShape* dst_shape) const {
    PartialTensorShape dst;
    TF_RETURN_IF_ERROR(
        ConvVolumeShape(attrs_, inputs[kSrc], inputs[kWeights], From(inputs, kWeights + 1), &dst));
    TF_RETURN_IF_ERROR(ToFullShape(dst, dst_shape));
    VolumeWindows v;
    TF_RETURN_IF_ERROR(ResolveVolume(attrs_, inputs[kSrc], &v));
    ConvVolumeDesc desc;
    desc.volumes = v.src.n / attrs_.depth;
    desc.depth = attrs_.depth;
    desc.out_depth = v.d.out;
    desc.kd = v.d.kernel;
    desc.sd = v.d.stride;
    desc.pad_front = v.d.pad_before;
    ConvDesc& s = desc.slice;
    s.windows.h = v.h;
    s.windows.w = v.w;
    TF_RETURN_IF_ERROR(MakeView(attrs_.src_layout, attrs_.channels, {}, v.src, &s.src));
    TF_RETURN_IF_ERROR(MakeView(attrs_.dst_layout, attrs_.oc(), {}, v.dst, &s.dst));
    s.algorithm = AlgorithmOf(attrs_.algorithm);
    s.changes_weights = changes_weights;
    s.post_ops = attrs_.post_ops.chain;
    return FromCore(MakeConvVolumePlan(desc, ActiveIsa(), threads, plan));
  }

  static PackRequest Weights(const Plan& plan, int, WeightsPacker pack) {
    const ConvDesc& s = plan.desc.slice;
    PackKey key = plan.conv.pack_key;
    key.op = "conv_volume";
    return {key,
            {plan.desc.kd, s.kh(), s.kw(), s.ic(), s.oc()},
            plan.conv.packed_bytes,
            plan.conv.reads_plain_weights ? plan.desc.weights_bytes() : 0,
            pack};
  }
  static void Pack(const Plan& plan, int, const float* plain, const float*, float* packed,
                   ThreadPool& pool) {
    PackConvVolumeWeights(plan, plain, packed, pool);
  }
  static void Run(const Plan& plan, const ConvOpMemory& memory, ThreadPool& pool) {
    RunConvVolume(plan, memory.buffers(), pool);
  }
  static void FillMemoryPlan(const Plan& plan, MemoryPlan* memory) {
    OneConvSpec::FillMemoryPlan(plan.conv, memory);
    memory->scratch = plan.scratch;
  }
  static ConvOpNote Note(const Plan& plan) {
    const ConvVolumeDesc& d = plan.desc;
    return {plan.conv.isa, plan.conv.algorithm_name(), d.slice.src.layout(), d.slice.dst.layout(),
            absl::StrCat("depth ", d.depth, " k", d.kd, " s", d.sd, " p", d.pad_front, " ",
                         WindowNote(d.slice))};
  }

 private:
  ConvVolumeAttrs attrs_;
};

const MemoryPlanRow row("BlockdnnConvVolume", PlanConvMemory<ConvVolume>);

REGISTER_KERNEL_BUILDER(
    Name("BlockdnnConvVolume").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"),
    ConvOp<ConvVolume>);

}  // namespace
}  // namespace bd
