// BlockdnnConvTranspose: TensorFlow's transposed convolution as a ConvTransposeDesc.
#include "cc/core/conv/conv_transpose/conv_transpose.h"
#include "cc/tensorflow/attrs/conv/conv_transpose_attrs.h"
#include "cc/tensorflow/op_kernels/conv/conv_op.h"

namespace bd {
namespace {

class ConvTranspose : public ConvOpSpec {
 public:
  static constexpr char kPrimitive[] = "conv_transpose";
  static constexpr int kNumWeights = 1;
  using Plan = ConvTransposePlan;

  template <typename Context>
  Status Read(Context* c) {
    return attrs_.Read(c);
  }
  const PackedWeightsAttrs& half(int) const { return attrs_; }
  Parts parts() const { return {attrs_.src_part, attrs_.dst_part}; }

  BlockedTensors Blocked() const {
    BlockedTensors blocked;
    blocked.Input(kSrc, attrs_.src_part, Layout::nChw16c, attrs_.channels)
        .Operands(attrs_.post_ops.chain, kWeights + 1, attrs_.dst_layout, attrs_.oc())
        .Output(0, attrs_.dst_part, attrs_.dst_layout, attrs_.oc());
    return blocked;
  }

  Status MakePlan(const InputShapeList& inputs, bool changes_weights, int threads, Plan* plan,
                  TensorShape* dst_shape) const {
    PartialTensorShape dst;
    TF_RETURN_IF_ERROR(ConvTransposeShape(attrs_, inputs[kSrc], inputs[kWeights],
                                          From(inputs, kWeights + 1), &dst));
    TF_RETURN_IF_ERROR(ToFullShape(dst, dst_shape));
    Plane src, result;
    TF_RETURN_IF_ERROR(ReadPlane("src", inputs[kSrc], Layout::nChw16c,
                                 attrs_.src_part.tensor_channels(attrs_.channels), &src));
    TF_RETURN_IF_ERROR(ConvTransposePlane(attrs_, src, &result));
    ConvTransposeDesc desc;
    TF_RETURN_IF_ERROR(MakeView(Layout::nChw16c, attrs_.channels, attrs_.src_part, src, &desc.src));
    TF_RETURN_IF_ERROR(
        MakeView(attrs_.dst_layout, attrs_.oc(), attrs_.dst_part, result, &desc.dst));
    desc.kh = attrs_.weights_shape[0];
    desc.kw = attrs_.weights_shape[1];
    desc.sh = attrs_.strides[0];
    desc.sw = attrs_.strides[1];
    desc.pad_top = attrs_.crops[0];
    desc.pad_left = attrs_.crops[2];
    desc.algorithm = AlgorithmOf(attrs_.algorithm);
    desc.changes_weights = changes_weights;
    desc.post_ops = attrs_.post_ops.chain;
    return FromCore(MakeConvTransposePlan(desc, ActiveIsa(), threads, plan));
  }

  static PackRequest Weights(const Plan& plan, int, WeightsPacker pack) {
    const ConvTransposeDesc& d = plan.desc;
    PackKey key = plan.pack_key;
    key.op = "conv_transpose";
    return {key, {d.kh, d.kw, d.oc(), d.ic()}, plan.packed_bytes, 0, pack};
  }
  static void Pack(const Plan& plan, int, const float* plain, const float* src, float* packed,
                   ThreadPool& pool) {
    PackConvTransposeWeights(plan, plain, packed, pool, src);
  }
  static void Run(const Plan& plan, const ConvOpMemory& memory, ThreadPool& pool) {
    RunConvTranspose(plan, memory.buffers(), pool);
  }
  static void FillMemoryPlan(const Plan& plan, MemoryPlan* memory) {
    memory->algorithm = plan.algorithm_name();
    memory->scratch = plan.scratch;
    memory->packed_weights = plan.packed_bytes;
    memory->blocking = {{"images", plan.images}};
  }
  static ConvOpNote Note(const Plan& plan) {
    const ConvTransposeDesc& d = plan.desc;
    return {plan.isa, absl::StrCat(plan.algorithm_name(), " ", plan.convs[0].conv.algorithm_name()),
            Layout::nChw16c, d.dst.layout(),
            absl::StrCat("k", d.kh, "x", d.kw, " s", d.sh, "x", d.sw, " p", d.pad_top, "x",
                         d.pad_left)};
  }

 private:
  ConvTransposeAttrs attrs_;
};

const MemoryPlanRow row("BlockdnnConvTranspose", PlanConvMemory<ConvTranspose>);

REGISTER_KERNEL_BUILDER(
    Name("BlockdnnConvTranspose").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"),
    ConvOp<ConvTranspose>);

}  // namespace
}  // namespace bd
