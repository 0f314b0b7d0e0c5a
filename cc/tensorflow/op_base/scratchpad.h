// Who provides the temporary memory of an execution: the attribute scratchpad_mode of an op.
#pragma once

#include <cstdint>

#include "cc/base/memory/scratch_pool.h"
#include "cc/tensorflow/op_base/op_utils.h"

namespace bd {

// The scratchpad of one execution; given back when it goes out of scope.
class ScratchpadMemory {
 public:
  ScratchpadMemory() = default;
  ScratchpadMemory(const ScratchpadMemory&) = delete;
  ScratchpadMemory& operator=(const ScratchpadMemory&) = delete;

  // 64-byte aligned; null for no bytes.
  void* data() const { return data_; }

 private:
  friend class Scratchpad;
  alignas(64) char small_[1024];
  Tensor tensor_;
  ScratchPool::Lease lease_;
  void* data_ = nullptr;
};

// A kernel's share of it. Both modes are safe on many threads at once, and
// nothing else of a kernel depends on the mode.
class Scratchpad {
 public:
  // Whether the mode is "library", not "user".
  void Set(bool library) { library_ = library; }

  // "user": from TensorFlow's allocator, for this execution; up to 1 KB on the
  // stack, where the allocator would cost 0.2 us. "library": a buffer that the
  // kernel keeps for later executions.
  Status Take(OpKernelContext* ctx, int64_t bytes, ScratchpadMemory* memory);

  // Whether the kernel keeps it between executions.
  bool keeps() const { return library_; }
  const char* mode() const { return library_ ? "library" : "user"; }

 private:
  bool library_ = false;
  ScratchPool pool_;
};

}  // namespace bd
