// BlockdnnConv: TensorFlow's convolution as a ConvDesc.
#include "cc/tensorflow/op_kernels/conv/conv_op.h"

namespace bd {
namespace {

class Conv : public ConvOpSpec {
 public:
  static constexpr char kPrimitive[] = "conv";

  template <typename Context>
  Status Read(Context* c) {
    return attrs_.Read(c);
  }
  const ConvAttrs& attrs() const { return attrs_; }

  Status Describe(const InputShapeList& inputs, ConvDesc* desc,
                  TensorShape* dst_shape) const override {
    PartialTensorShape dst;
    TF_RETURN_IF_ERROR(
        DescribeConv(attrs_, inputs[kSrc], inputs[kWeights], ArgShapes(inputs), desc, &dst));
    return ToFullShape(dst, dst_shape);
  }

  BlockedTensors Blocked() const override {
    const int64_t oc = attrs_.oc();
    BlockedTensors blocked;
    blocked.Input(kSrc, attrs_.src_part, attrs_.src_layout, attrs_.channels)
        .Operands(attrs_.post_ops.chain, kFirstArg, attrs_.dst_layout, oc)
        .Output(0, attrs_.dst_part, attrs_.dst_layout, oc);
    return blocked;
  }

  Parts parts() const override { return {attrs_.src_part, attrs_.dst_part}; }

 private:
  ConvAttrs attrs_;
};

const MemoryPlanRow row("BlockdnnConv", PlanConvMemory<Conv>);

REGISTER_KERNEL_BUILDER(
    Name("BlockdnnConv").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"), ConvOp<Conv>);

}  // namespace
}  // namespace bd
