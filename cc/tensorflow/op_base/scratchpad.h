// Who provides the temporary memory of an execution: the attribute scratchpad_mode of an op.
#pragma once

#include <cstdint>

#include "cc/base/memory/scratch_pool.h"
#include "cc/base/size.h"
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
  Status Take(OpKernelContext* ctx, int64_t bytes, ScratchpadMemory* memory) {
    if (bytes == 0) return absl::OkStatus();
    if (!Size(bytes).fits()) return Invalid("a scratchpad of ", bytes, " bytes is no size");
    if (library_) {
      memory->lease_ = pool_.Take(bytes);
      memory->data_ = memory->lease_.data();
      if (memory->data_ != nullptr) return absl::OkStatus();
      return absl::ResourceExhaustedError(
          absl::StrCat("no memory for a scratchpad of ", bytes, " bytes"));
    }
    if (bytes <= static_cast<int64_t>(sizeof(memory->small_))) {
      memory->data_ = memory->small_;
      return absl::OkStatus();
    }
    TF_RETURN_IF_ERROR(
        ctx->allocate_temp(tensorflow::DT_INT8, TensorShape({bytes}), &memory->tensor_));
    memory->data_ = memory->tensor_.data();
    PreferHugePages(memory->data_, bytes);
    return absl::OkStatus();
  }

  // Whether the kernel keeps it between executions.
  bool keeps() const { return library_; }
  const char* mode() const { return library_ ? "library" : "user"; }

 private:
  bool library_ = false;
  ScratchPool pool_;
};

}  // namespace bd
