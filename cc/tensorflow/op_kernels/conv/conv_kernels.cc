// BlockdnnConv: TensorFlow's convolution as a ConvDesc.
#include "cc/tensorflow/op_kernels/conv/conv_op.h"

namespace bd {
namespace {

class Conv : public OneConvSpec {
 public:
  static constexpr char kPrimitive[] = "conv";

  template <typename Context>
  Status Read(Context* c) {
    return attrs_.Read(c);
  }
  const PackedWeightsAttrs& half(int) const { return attrs_; }
  Parts parts() const { return {attrs_.src_part, attrs_.dst_part}; }

  BlockedTensors Blocked() const {
    const int64_t oc = attrs_.oc();
    BlockedTensors blocked;
    blocked.Input(kSrc, attrs_.src_part, attrs_.src_layout, attrs_.channels)
        .Operands(attrs_.post_ops.chain, kWeights + 1, attrs_.dst_layout, oc)
        .Output(0, attrs_.dst_part, attrs_.dst_layout, oc);
    return blocked;
  }

  Status MakePlan(const InputShapeList& inputs, bool changes_weights, int threads, ConvPlan* plan,
                  TensorShape* dst_shape) const {
    ConvDesc desc;
    PartialTensorShape dst;
    TF_RETURN_IF_ERROR(DescribeConv(attrs_, inputs[kSrc], inputs[kWeights],
                                    From(inputs, kWeights + 1), &desc, &dst));
    TF_RETURN_IF_ERROR(ToFullShape(dst, dst_shape));
    desc.changes_weights = desc.hands_plain = changes_weights;
    return FromCore(MakeConvPlan(desc, ActiveIsa(), threads, plan));
  }

 private:
  ConvAttrs attrs_;
};

const MemoryPlanRow row("BlockdnnConv", PlanConvMemory<Conv>);

REGISTER_KERNEL_BUILDER(
    Name("BlockdnnConv").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"), ConvOp<Conv>);

}  // namespace
}  // namespace bd
