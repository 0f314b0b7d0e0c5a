// BlockdnnInnerProduct: rows are the pixels of a plain 1x1 convolution.
#include <algorithm>

#include "cc/tensorflow/op_kernels/conv/conv_op.h"

namespace bd {
namespace {

class InnerProduct : public OneConvSpec {
 public:
  static constexpr char kPrimitive[] = "inner_product";

  template <typename Context>
  Status Read(Context* c) {
    return attrs_.Read(c);
  }
  const PackedWeightsAttrs& half(int) const { return attrs_; }
  BlockedTensors Blocked() const { return {}; }

  Status MakePlan(const InputShapeList& inputs, bool changes_weights, int threads, ConvPlan* plan,
                  TensorShape* dst_shape) const {
    PartialTensorShape dst;
    TF_RETURN_IF_ERROR(InnerProductShape(attrs_, inputs[kSrc], inputs[kWeights],
                                         From(inputs, kWeights + 1), &dst));
    TF_RETURN_IF_ERROR(ToFullShape(dst, dst_shape));
    ConvDesc desc;
    desc.algorithm = AlgorithmOf(attrs_.algorithm);
    desc.keeps_weights = attrs_.constant_weights;
    desc.changes_weights = changes_weights;
    desc.post_ops = attrs_.post_ops.chain;
    Plane rows = {1, 1, dst_shape->num_elements() / attrs_.oc()};
    if (ReadsSamples(desc.post_ops)) SplitSamples(*dst_shape, &rows, &desc.post_ops);
    desc.windows.w.size = desc.windows.w.out = rows.w;
    TF_RETURN_IF_ERROR(MakeView(Layout::nhwc, attrs_.ic(), {}, rows, &desc.src));
    TF_RETURN_IF_ERROR(MakeView(Layout::nhwc, attrs_.oc(), {}, rows, &desc.dst));
    return FromCore(MakeConvPlan(desc, ActiveIsa(), threads, plan));
  }

 private:
  static bool ReadsSamples(const PostOpChain& chain) {
    const auto reads = [](const PostOp& op) {
      return op.kind == PostOpKind::kBinary && op.shape == OperandShape::kSampleChannel;
    };
    return std::any_of(chain.entries().begin(), chain.entries().end(), reads);
  }

  // Rows of one sample become an image. In [N, oc] every row is a sample, and
  // sample_channel operands are tensors.
  static void SplitSamples(const TensorShape& dst_shape, Plane* rows, PostOpChain* post_ops) {
    if (dst_shape.dims() > 2) {
      rows->n = dst_shape.dim_size(0);
      rows->w = rows->n == 0 ? 0 : rows->w / rows->n;
      return;
    }
    PostOpChain chain;
    for (PostOp op : post_ops->entries()) {
      if (op.shape == OperandShape::kSampleChannel) op.shape = OperandShape::kTensor;
      chain.Append(op);
    }
    *post_ops = chain;
  }

  InnerProductAttrs attrs_;
};

const MemoryPlanRow row("BlockdnnInnerProduct", PlanConvMemory<InnerProduct>);

REGISTER_KERNEL_BUILDER(
    Name("BlockdnnInnerProduct").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"),
    ConvOp<InnerProduct>);

}  // namespace
}  // namespace bd
