// BlockdnnInnerProduct: rows are the pixels of a plain 1x1 convolution.
#include <algorithm>

#include "cc/kernels/conv_op.h"

namespace bd {
namespace {

class InnerProductOp : public ConvOpBase {
 public:
  explicit InnerProductOp(OpKernelConstruction* ctx) : ConvOpBase(ctx, "inner_product") {
    OP_REQUIRES_OK(ctx, attrs_.Read(ctx));
    Init(attrs_.post_ops, attrs_.weights_offset, attrs_.constant_weights);
  }

 private:
  Status Describe(OpKernelContext* ctx, ConvDesc* desc, TensorShape* dst_shape) const override {
    PartialTensorShape dst;
    TF_RETURN_IF_ERROR(InnerProductShape(attrs_, InputShape(ctx, kSrc), InputShape(ctx, kWeights),
                                         InputShapes(ctx, kFirstArg), &dst));
    TF_RETURN_IF_ERROR(ToFullShape(dst, dst_shape));
    desc->ic = attrs_.ic();
    desc->oc = attrs_.oc();
    desc->iw = desc->ow = dst_shape->num_elements() / attrs_.oc();
    desc->src_layout = desc->dst_layout = Layout::nhwc;
    desc->post_ops = attrs_.post_ops.chain;
    if (ReadsSamples(desc->post_ops)) SplitSamples(*dst_shape, desc);
    return absl::OkStatus();
  }

  static bool ReadsSamples(const PostOpChain& chain) {
    const auto reads = [](const PostOp& op) {
      return op.kind == PostOpKind::kBinary && op.shape == OperandShape::kSampleChannel;
    };
    return std::any_of(chain.entries().begin(), chain.entries().end(), reads);
  }

  // Rows of one sample become an image. In [N, oc] every row is a sample, and
  // sample_channel operands are tensors.
  static void SplitSamples(const TensorShape& dst_shape, ConvDesc* desc) {
    if (dst_shape.dims() > 2) {
      desc->n = dst_shape.dim_size(0);
      desc->iw = desc->ow = desc->n == 0 ? 0 : desc->iw / desc->n;
      return;
    }
    PostOpChain chain;
    for (PostOp op : desc->post_ops.entries()) {
      if (op.shape == OperandShape::kSampleChannel) op.shape = OperandShape::kTensor;
      chain.Append(op);
    }
    desc->post_ops = chain;
  }

  BlockedTensors Blocked(OpKernelContext*) const override { return {}; }

  InnerProductAttrs attrs_;
};

REGISTER_KERNEL_BUILDER(
    Name("BlockdnnInnerProduct").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"),
    InnerProductOp);

}  // namespace
}  // namespace bd
