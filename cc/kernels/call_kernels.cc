// BlockdnnCall, and the release of what its kernels hold.
#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cc/kernels/c_api.h"
#include "cc/kernels/op_sequence.h"
#include "tensorflow/core/framework/attr_value.pb.h"

namespace bd {
namespace {

using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;

// One kernel's sequence, for as long as somebody may call it.
class HeldSequence {
 public:
  HeldSequence(std::string function, std::shared_ptr<const OpSequence> sequence)
      : function_(std::move(function)), sequence_(std::move(sequence)) {}

  const std::string& function() const { return function_; }

  std::shared_ptr<const OpSequence> Get() {
    std::lock_guard<std::mutex> lock(mutex_);
    return sequence_;
  }

  void Release() {
    std::lock_guard<std::mutex> lock(mutex_);
    sequence_.reset();
  }

 private:
  const std::string function_;
  std::mutex mutex_;
  std::shared_ptr<const OpSequence> sequence_;
};

// The sequences of this process. TensorFlow keeps the kernels of eager ops for good: without
// Release each function that was ever called in line would keep its packed weights.
class Sequences {
 public:
  static Sequences& Get() {
    static Sequences* sequences = new Sequences;  // outlives every kernel
    return *sequences;
  }

  void Add(const std::shared_ptr<HeldSequence>& held) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto gone = [](const auto& other) { return other.expired(); };
    held_.erase(std::remove_if(held_.begin(), held_.end(), gone), held_.end());
    held_.push_back(held);
  }

  void Release(const std::string& function) {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& weak : held_) {
      const std::shared_ptr<HeldSequence> held = weak.lock();
      if (held != nullptr && held->function() == function) held->Release();
    }
  }

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<HeldSequence>> held_;
};

class CallOp : public tensorflow::OpKernel {
 public:
  explicit CallOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    tensorflow::NameAttrList f;
    OP_REQUIRES_OK(ctx, ctx->GetAttr("f", &f));
    const auto function = ctx->function_library()->GetFunctionLibraryDefinition()->Find(f.name());
    OP_REQUIRES(ctx, function != nullptr,
                absl::InvalidArgumentError(absl::StrCat("there is no function ", f.name())));
    auto sequence = std::make_shared<OpSequence>();
    OP_REQUIRES_OK(ctx, OpSequence::Make(ctx, *function, sequence.get()));
    held_ = std::make_shared<HeldSequence>(f.name(), std::move(sequence));
    Sequences::Get().Add(held_);
  }

  void Compute(OpKernelContext* ctx) override {
    const std::shared_ptr<const OpSequence> sequence = held_->Get();
    OP_REQUIRES(ctx, sequence != nullptr,
                absl::FailedPreconditionError(
                    absl::StrCat("the function ", held_->function(), " was released")));
    sequence->Run(ctx);
  }

 private:
  std::shared_ptr<HeldSequence> held_;
};

REGISTER_KERNEL_BUILDER(Name("BlockdnnCall").Device(tensorflow::DEVICE_CPU), CallOp);

}  // namespace
}  // namespace bd

void BlockdnnReleaseCalls(const char* function) { bd::Sequences::Get().Release(function); }
