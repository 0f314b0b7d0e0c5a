#include "cc/tensorflow/regions/step.h"

#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tsl/profiler/lib/traceme.h"

namespace bd {
namespace {

absl::Status InNode(const OpKernel& kernel, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(status.message(), " [[node ", kernel.name(), "]]"));
}

}  // namespace

absl::Status CheckCancelled(const OpKernelContext::Params& params) {
  tensorflow::CancellationManager* const manager = params.cancellation_manager;
  if (manager == nullptr || !manager->IsCancelled()) return absl::OkStatus();
  return absl::CancelledError("the call was cancelled");
}

std::string ProfiledName(const OpKernel& kernel) {
  return absl::StrCat(kernel.name(), ":", kernel.type_string());
}

PoolOpKernel* Step::own_kernel() const { return dynamic_cast<PoolOpKernel*>(kernel.get()); }

absl::Status Step::Run(OpKernelContext::Params* params, std::vector<Tensor>* tensors,
                       std::unique_ptr<PreparedLaunch>* prepared) const {
  // Arguments of this op alone. A tensor that is read again keeps its reference in
  // `tensors`, so that no op takes its memory for a result.
  absl::InlinedVector<Tensor, 8> held;
  absl::InlinedVector<tensorflow::TensorValue, 8> values;
  held.reserve(inputs.size());
  for (const TensorUse& use : inputs) {
    Tensor& tensor = (*tensors)[use.tensor];
    if (use.last) {
      held.push_back(std::move(tensor));
    } else {
      held.push_back(tensor);
    }
    values.emplace_back(&held.back());
  }
  params->inputs = values;
  params->op_kernel = kernel.get();
  const int outputs = kernel->num_outputs();
  OpKernelContext ctx(params, outputs);
  {
    const tsl::profiler::TraceMe profiled([&] { return ProfiledName(*kernel); });
    PoolOpKernel* const own = prepared == nullptr ? nullptr : own_kernel();
    if (own != nullptr) {
      own->ComputeAndPrepare(&ctx, prepared);
    } else {
      kernel->Compute(&ctx);
    }
  }
  if (!ctx.status().ok()) return InNode(*kernel, ctx.status());
  for (int i = 0; i < outputs; ++i) {
    const std::unique_ptr<Tensor> output(ctx.release_output(i).tensor);
    if (output == nullptr) {
      return InNode(*kernel, absl::InternalError(absl::StrCat("output ", i, " was not set")));
    }
    (*tensors)[first_output + i] = std::move(*output);
  }
  return absl::OkStatus();
}

}  // namespace bd
