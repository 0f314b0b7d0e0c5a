// An execution in two halves: what an op resolves from shapes and weights, and the run on memory.
// What outlasts its execution can be run again without a context.
#pragma once

#include <cstdint>

#include "absl/types/span.h"

namespace bd {

struct WeightsLease;  // cc/tensorflow/weights

// Base pointers of one execution, the inputs in the op's order. Of which type elements are, plans
// know: a part of a tensor starts some bytes after the base.
struct LaunchMemory {
  const void* const* inputs;
  void* const* outputs;
  void* scratch;                          // 64-byte aligned
  const WeightsLease* weights = nullptr;  // one for each input of weights, if they are packed

  template <typename T>
  const T* in(int i, int64_t bytes = 0) const {
    return reinterpret_cast<const T*>(static_cast<const char*>(inputs[i]) + bytes);
  }
  template <typename T>
  T* out(int i = 0, int64_t bytes = 0) const {
    return reinterpret_cast<T*>(static_cast<char*>(outputs[i]) + bytes);
  }
  // All from input `first` on.
  template <typename T>
  const T* const* all_in(int first) const {
    return reinterpret_cast<const T* const*>(inputs + first);
  }
};

// What an op has resolved, for later executions on inputs of the same shapes. Safe to run on many
// threads.
class PreparedLaunch {
 public:
  virtual ~PreparedLaunch() = default;
  virtual void Run(const LaunchMemory& memory) const = 0;
  virtual int64_t scratch_bytes() const = 0;
  // The inputs that must still be in the very memory they were in.
  virtual absl::Span<const int> fixed_inputs() const = 0;
};

}  // namespace bd
