// A function's body as kernels in an order that its edges allow. TensorFlow's executor
// counts a node's missing inputs, queues what is ready and takes the call to a thread of
// its pool; a chain of ops that use all threads themselves needs none of that (a node
// costs 1.5 us there and 0.3 us here, the thread 50 to 100 us a call).
#ifndef CC_TENSORFLOW_REGIONS_OP_SEQUENCE_H_
#define CC_TENSORFLOW_REGIONS_OP_SEQUENCE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "cc/tensorflow/regions/static_plans.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace bd {

// Safe to run from many threads: what a run changes is its own.
class OpSequence {
 public:
  // InvalidArgument names the node that cannot run in line. `keeps_memory`: runs may keep
  // the memory of intermediate tensors for later ones (prepared_run.h).
  static absl::Status Make(tensorflow::OpKernelConstruction* ctx,
                           const tensorflow::FunctionDef& function, bool keeps_memory,
                           OpSequence* sequence);

  // A run whose results have their places but no values yet.
  class Started {
   public:
    // They hold what the function returns once this has succeeded. An error, or false: start
    // again the usual way.
    absl::Status Finish(bool* done);

   private:
    friend class OpSequence;
    std::shared_ptr<const OpSequence> sequence_;  // outlives what it leased
    tensorflow::OpKernelContext::Params params_;
    PreparedRuns::Lease lease_;
  };

  // Null, and nothing has happened, where results are only known in the end.
  static std::unique_ptr<Started> Start(std::shared_ptr<const OpSequence> sequence,
                                        tensorflow::OpKernelContext::Params params,
                                        absl::Span<const tensorflow::Tensor> arguments,
                                        std::vector<tensorflow::Tensor>* results);

  // Arguments -> results. `params` says where: device and resources are needed, of the
  // rest what the ops ask for. An op's error carries the name of its node.
  absl::Status Run(tensorflow::OpKernelContext::Params params,
                   absl::Span<const tensorflow::Tensor> arguments,
                   std::vector<tensorflow::Tensor>* results) const;

 private:
  class Builder;

  void Complete(tensorflow::OpKernelContext::Params* params) const;
  // Every step with a context; the run is recorded if `recording` is not null.
  absl::Status RunSteps(tensorflow::OpKernelContext::Params* params,
                        absl::Span<const tensorflow::Tensor> arguments, Recording* recording,
                        std::vector<tensorflow::Tensor>* results) const;

  std::vector<SequenceStep> steps_;
  std::vector<int> results_;  // the tensors that the function returns
  int num_tensors_ = 0;       // arguments first
  // Of each output of a step: memory of the CPU, nothing else.
  std::vector<tensorflow::AllocatorAttributes> output_attributes_;
  std::unique_ptr<PreparedRuns> prepared_;  // null: nothing is kept between runs
};

}  // namespace bd

#endif  // CC_TENSORFLOW_REGIONS_OP_SEQUENCE_H_
