// BlockdnnCall.
#include "cc/kernels/op_sequence.h"
#include "tensorflow/core/framework/attr_value.pb.h"

namespace bd {
namespace {

using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;

class CallOp : public tensorflow::OpKernel {
 public:
  explicit CallOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    tensorflow::NameAttrList f;
    OP_REQUIRES_OK(ctx, ctx->GetAttr("f", &f));
    const auto function = ctx->function_library()->GetFunctionLibraryDefinition()->Find(f.name());
    OP_REQUIRES(ctx, function != nullptr,
                absl::InvalidArgumentError(absl::StrCat("there is no function ", f.name())));
    OP_REQUIRES_OK(ctx, OpSequence::Make(ctx, *function, &sequence_));
  }

  void Compute(OpKernelContext* ctx) override { sequence_.Run(ctx); }

 private:
  OpSequence sequence_;
};

REGISTER_KERNEL_BUILDER(Name("BlockdnnCall").Device(tensorflow::DEVICE_CPU), CallOp);

}  // namespace
}  // namespace bd
