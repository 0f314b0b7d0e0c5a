// A function's body as kernels in an order that its edges allow. TensorFlow's executor
// counts a node's missing inputs, queues what is ready and takes the call to a thread of
// its pool; a chain of ops that use all threads themselves needs none of that (a node
// costs 1.5 us there and 0.3 us here, the thread 50 to 100 us a call).
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "cc/tensorflow/regions/static_plan.h"
#include "cc/tensorflow/regions/step.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace bd {

constexpr char kRegionOp[] = "BlockdnnRegion";

// Where a sequence's kernels are made and run.
struct KernelSite {
  tensorflow::DeviceBase* device;
  tensorflow::ResourceMgr* resources;
  tensorflow::FunctionLibraryRuntime* runtime;  // may be null: few kernels ask for it
  const tensorflow::FunctionLibraryDefinition* library;
};

// Safe to use from many threads: what a run changes is its own.
class OpSequence {
 public:
  // Of a function of the library, with the bodies of the regions and functions that it calls in
  // line.
  // InvalidArgument names the node that cannot run so.
  static absl::Status Make(const KernelSite& site, const std::string& function,
                           OpSequence* sequence);

  // Adds what all kernels of a run need to what its caller knows.
  void Complete(tensorflow::OpKernelContext::Params* params) const;

  // Arguments -> results, every step with a context made of complete `params`. The run is
  // recorded if `recording` is not null.
  absl::Status Run(tensorflow::OpKernelContext::Params* params, absl::Span<const Tensor> arguments,
                   Recording* recording, std::vector<Tensor>* results) const;

  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<int>& results() const { return results_; }
  int num_tensors() const { return num_tensors_; }
  const tensorflow::DataTypeVector& argument_types() const { return argument_types_; }
  const tensorflow::DataTypeVector& result_types() const { return result_types_; }

  // What the kernels hold, static plans hold as well.
  void ReleaseWeights() const;

  // Whether nobody notices that a run stops halfway and starts again, and nobody wants to see
  // every op: a static plan may run instead.
  bool is_repeatable() const { return is_repeatable_; }

 private:
  class Builder;

  std::vector<Step> steps_;
  std::vector<int> results_;  // the tensors that the function returns
  int num_tensors_ = 0;       // arguments first
  tensorflow::DataTypeVector argument_types_, result_types_;
  // Of each output of a step: memory of the CPU, nothing else.
  std::vector<tensorflow::AllocatorAttributes> output_attributes_;
  bool is_repeatable_ = false;
};

}  // namespace bd
