#include "cc/tensorflow/op_base/scratchpad.h"

#include "absl/strings/str_cat.h"

namespace bd {

Status Scratchpad::Take(OpKernelContext* ctx, int64_t bytes, ScratchpadMemory* memory) {
  if (bytes == 0) return absl::OkStatus();
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

}  // namespace bd
