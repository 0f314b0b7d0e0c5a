// A run of a sequence on arguments of shapes that have come before, without contexts: what each
// op resolved is kept (launch.h), and where its tensors lie is known beforehand.
//
// Between two kernels of a network most of what an op touches has left the caches: contexts,
// allocator, plan and weights caches with their locks took 3 to 5 us an op. A static plan goes
// through one array of pointers. Tensors that only prepared launches touch lie in one arena;
// arguments, results and what other ops read or write are ordinary tensors.
#pragma once

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "cc/base/memory/aligned_buffer.h"
#include "cc/tensorflow/regions/step.h"

namespace bd {

class WeightsFile;

// What a run of the sequence tells about later ones.
class Recording {
 public:
  struct TensorInfo {
    tensorflow::DataType dtype;
    TensorShape shape;
    const void* data;
    int64_t bytes;
    int producer;  // step; -1 for an argument
    static TensorInfo Of(const Tensor& tensor, int producer) {
      return {tensor.dtype(), tensor.shape(), tensor.data(),
              static_cast<int64_t>(tensor.TotalBytes()), producer};
    }
    bool Describes(const Tensor& tensor) const {
      return tensor.dtype() == dtype && tensor.shape() == shape;
    }
  };

  Recording(absl::Span<const Tensor> arguments, int num_tensors);

  // The next step has run.
  void Add(const Step& step, std::unique_ptr<PreparedLaunch> launch,
           const std::vector<Tensor>& tensors);

 private:
  friend class StaticPlan;
  void AddTensor(const Tensor& tensor, int producer);

  std::vector<TensorInfo> tensors_;
  std::vector<std::unique_ptr<PreparedLaunch>> launches_;  // of each step, or null
  std::vector<int> of_files_;                              // a tensor of each file of weights
  std::vector<const WeightsFile*> files_;                  // those
};

// The memory of one run at a time, kept for the next.
class Arena {
 private:
  friend class StaticPlan;
  int64_t plan_ = 0;  // whose pointers these are: a serial_
  AlignedBuffer buffer_;
  std::vector<void*> pointers_;
  std::vector<const void*> bound_;  // where the pointers of open tensors lead
  std::vector<Tensor> tensors_;     // the open ones; empty between runs
};

// Immutable; safe to run on many threads, with an arena for each run.
class StaticPlan {
 public:
  // Null if there is nothing to gain. `steps` must outlive it.
  static std::shared_ptr<const StaticPlan> Make(const std::vector<Step>& steps,
                                                const std::vector<int>& results,
                                                size_t num_arguments, Recording recording);

  // Arguments of the recorded types and shapes -> results. *done: false if something is not as it
  // was (weights, a result's shape of an op that is not prepared) or memory is short; nothing has
  // happened then that anybody could see.
  absl::Status Run(tensorflow::OpKernelContext::Params* params, absl::Span<const Tensor> arguments,
                   Arena* arena, std::vector<Tensor>* results, bool* done) const;

 private:
  struct Item {
    const PreparedLaunch* launch = nullptr;  // null: the step runs with a context
    int step = 0;
    int first_pointer = 0;  // of inputs, outputs, scratch
    int num_inputs = 0, num_outputs = 0;
    int made_end = 0;   // of made_
    int drops_end = 0;  // of drops_
  };
  // A tensor outside the arena.
  struct Open {
    int tensor;
    std::vector<int> pointers;    // that lead there
    const void* fixed = nullptr;  // where it has to be, if it matters
  };
  class Maker;

  explicit StaticPlan(const std::vector<Step>& steps);
  // Lays the pointers of this plan into *arena; false if there is not enough memory.
  bool Claim(Arena* arena) const;
  absl::Status RunItems(tensorflow::OpKernelContext::Params* params, Arena* arena,
                        bool* done) const;
  // Allocates a tensor outside the arena; false if there is no memory.
  bool Allocate(const tensorflow::OpKernelContext::Params& params, int tensor, Arena* arena) const;
  // False if the tensor is not where it has to be.
  bool Bind(int tensor, Arena* arena) const;

  const int64_t serial_;
  const std::vector<Step>& steps_;
  std::vector<int> results_;
  size_t num_arguments_ = 0;
  std::vector<int> of_files_;  // tensors of which each is of another file of weights
  std::vector<Recording::TensorInfo> tensors_;
  std::vector<std::unique_ptr<PreparedLaunch>> launches_;
  std::vector<Item> items_;
  std::vector<int> made_;         // open tensors that a launch writes, by item
  std::vector<int> drops_;        // open tensors that nobody reads after an item, by item
  std::vector<Open> open_;        // arguments first
  std::vector<int> open_index_;   // of tensors: into open_, or -1
  std::vector<int64_t> offsets_;  // of pointers: into the arena, or -1
  int64_t arena_bytes_ = 0;
};

}  // namespace bd
