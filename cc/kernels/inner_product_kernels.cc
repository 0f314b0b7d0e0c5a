// BlockdnnInnerProduct: rows are the pixels of a plain 1x1 convolution.
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
    return absl::OkStatus();
  }

  InnerProductAttrs attrs_;
};

REGISTER_KERNEL_BUILDER(
    Name("BlockdnnInnerProduct").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"),
    InnerProductOp);

}  // namespace
}  // namespace bd
