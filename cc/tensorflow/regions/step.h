// One op of a sequence, run by a context of its own.
#pragma once

#include <memory>
#include <vector>

#include "cc/tensorflow/op_base/launch.h"
#include "cc/tensorflow/op_base/op_utils.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace bd {

// A tensor of the run, in the place that Step::first_output counts from; `last`:
// nobody reads it afterwards, so the reader may write its result there.
struct TensorUse {
  int tensor;
  bool last;
};

struct Step {
  std::unique_ptr<tensorflow::OpKernel> kernel;
  std::vector<TensorUse> inputs;
  int first_output = 0;

  // The kernel as one of this library's; null for TensorFlow's.
  PoolOpKernel* own_kernel() const;

  // `params` are the run's. An error carries the name of the node. *prepared, if not null,
  // receives what later runs may repeat.
  absl::Status Run(tensorflow::OpKernelContext::Params* params, std::vector<Tensor>* tensors,
                   std::unique_ptr<PreparedLaunch>* prepared) const;
};

// Whether the run that these are of was told to stop: between two ops it does.
absl::Status CheckCancelled(const tensorflow::OpKernelContext::Params& params);

// For the profiler, as TensorFlow's executors name what they run.
std::string ProfiledName(const tensorflow::OpKernel& kernel);

}  // namespace bd
