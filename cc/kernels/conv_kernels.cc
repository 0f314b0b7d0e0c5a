// BlockdnnConv: TensorFlow's convolution as a ConvDesc.
#include <string>

#include "cc/kernels/conv_op.h"

namespace bd {
namespace {

ConvAlgorithm AlgorithmOf(const std::string& name) {
  if (name == "direct") return ConvAlgorithm::kDirect;
  if (name == "auto_small") return ConvAlgorithm::kAutoSmall;
  return name == "winograd" ? ConvAlgorithm::kWinograd : ConvAlgorithm::kAuto;
}

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
    const PartialTensorShape& src = inputs[kSrc];
    PartialTensorShape dst;
    TF_RETURN_IF_ERROR(ConvShape(attrs_, src, inputs[kWeights], ArgShapes(inputs), &dst));
    TF_RETURN_IF_ERROR(ToFullShape(dst, dst_shape));
    Plane plane;
    Window1d h, w;
    TF_RETURN_IF_ERROR(ReadPlane("src", src, attrs_.src_layout, attrs_.channels, &plane));
    TF_RETURN_IF_ERROR(ResolveWindows(attrs_.window, plane, &h, &w));
    desc->n = plane.n;
    desc->ic = attrs_.channels;
    desc->ih = plane.h;
    desc->iw = plane.w;
    desc->oc = attrs_.oc();
    desc->oh = h.out;
    desc->ow = w.out;
    desc->kh = h.kernel;
    desc->kw = w.kernel;
    desc->sh = h.stride;
    desc->sw = w.stride;
    desc->dh = h.dilation;
    desc->dw = w.dilation;
    desc->pad_top = h.pad_before;
    desc->pad_left = w.pad_before;
    desc->groups = attrs_.groups;
    desc->src_layout = attrs_.src_layout;
    desc->dst_layout = attrs_.dst_layout;
    desc->algorithm = AlgorithmOf(attrs_.algorithm);
    desc->post_ops = attrs_.post_ops.chain;
    return absl::OkStatus();
  }

  BlockedTensors Blocked() const override {
    const int64_t oc = attrs_.oc();
    return BlockedTensors()
        .Input(kSrc, attrs_.src_layout, {attrs_.channels})
        .Operands(attrs_.post_ops.chain, kFirstArg, attrs_.dst_layout, oc)
        .Output(0, attrs_.dst_layout, {oc});
  }

 private:
  ConvAttrs attrs_;
};

const MemoryPlanRow row("BlockdnnConv", PlanConvMemory<Conv>);

REGISTER_KERNEL_BUILDER(
    Name("BlockdnnConv").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"), ConvOp<Conv>);

}  // namespace
}  // namespace bd
