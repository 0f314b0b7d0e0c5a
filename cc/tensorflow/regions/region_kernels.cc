// BlockdnnCall: a function that runs as one op.
#include <memory>
#include <utility>
#include <vector>

#include "cc/tensorflow/regions/function_registry.h"
#include "tensorflow/core/framework/attr_value.pb.h"

namespace bd {
namespace {

using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;

// What ops of a run may ask for besides their tensors.
OpKernelContext::Params ParamsOf(OpKernelContext* ctx) {
  OpKernelContext::Params params;
  params.step_id = ctx->step_id();
  params.device = ctx->device();
  params.op_device_context = ctx->op_device_context();
  params.resource_manager = ctx->resource_manager();
  params.step_container = ctx->step_container();
  params.rendezvous = ctx->rendezvous();
  params.session_state = ctx->session_state();
  params.cancellation_manager = ctx->cancellation_manager();
  params.function_library = ctx->function_library();
  params.runner = ctx->runner();
  return params;
}

class CallOp : public tensorflow::OpKernel {
 public:
  explicit CallOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    tensorflow::NameAttrList f;
    OP_REQUIRES_OK(ctx, ctx->GetAttr("f", &f));
    const auto function = ctx->function_library()->GetFunctionLibraryDefinition()->Find(f.name());
    OP_REQUIRES(ctx, function != nullptr,
                absl::InvalidArgumentError(absl::StrCat("there is no function ", f.name())));
    bool keeps_memory;
    OP_REQUIRES_OK(ctx, ctx->GetAttr("keeps_memory", &keeps_memory));
    auto sequence = std::make_shared<OpSequence>();
    OP_REQUIRES_OK(ctx, OpSequence::Make(ctx, *function, keeps_memory, sequence.get()));
    held_ = std::make_shared<HeldSequence>(f.name(), std::move(sequence));
    HeldSequences::Get().Add(held_);
  }

  void Compute(OpKernelContext* ctx) override {
    const std::shared_ptr<const OpSequence> sequence = held_->Get();
    OP_REQUIRES(ctx, sequence != nullptr,
                absl::FailedPreconditionError(
                    absl::StrCat("the function ", held_->function(), " was released")));
    std::vector<Tensor> arguments, results;
    for (int i = 0; i < ctx->num_inputs(); ++i) arguments.push_back(ctx->input(i));
    OP_REQUIRES_OK(ctx, sequence->Run(ParamsOf(ctx), arguments, &results));
    for (size_t i = 0; i < results.size(); ++i) ctx->set_output(i, results[i]);
    held_->Admit(*ctx);
  }

 private:
  std::shared_ptr<HeldSequence> held_;
};

REGISTER_KERNEL_BUILDER(Name("BlockdnnCall").Device(tensorflow::DEVICE_CPU), CallOp);

}  // namespace
}  // namespace bd
