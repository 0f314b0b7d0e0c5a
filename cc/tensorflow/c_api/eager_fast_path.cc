// Calls of a held sequence without TensorFlow's eager dispatch, which costs 0.1 to 0.2 ms
// once a network's tensors have driven it out of the caches.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cc/tensorflow/c_api/c_api.h"
#include "cc/tensorflow/regions/function_registry.h"
#include "tensorflow/c/eager/immediate_execution_context.h"
#include "tensorflow/c/eager/immediate_execution_tensor_handle.h"
#include "tensorflow/c/tf_tensor_internal.h"
#include "tsl/platform/denormal.h"
#include "tsl/platform/setround.h"

namespace bd {
namespace {

using tensorflow::AbstractTensorPtr;
using tensorflow::ImmediateExecutionContext;
using tensorflow::ImmediateExecutionTensorHandle;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;

// Denormals and rounding as TensorFlow's executors run ops.
struct AsInExecutors {
  const tsl::port::ScopedFlushDenormal flush;
  const tsl::port::ScopedSetRound round{FE_TONEAREST};
};

class DirectCall {
 public:
  DirectCall(std::string function, const BlockdnnEager& eager)
      : function_(std::move(function)), eager_(eager) {}

  bool Capture(void* const* captures, int count) { return Read(captures, count, &captures_); }

  // A call between its start and its end.
  struct Started {
    std::unique_ptr<OpSequence::Started> run;
  };

  // Null if the call has to go another way; nothing has happened then.
  std::unique_ptr<Started> Start(void* const* arguments, int count, void** results) {
    const std::shared_ptr<HeldSequence> held = Held();
    if (held == nullptr || IsAsync()) return nullptr;
    std::shared_ptr<const OpSequence> sequence = held->Get();
    std::vector<Tensor> tensors, outputs;
    tensors.reserve(count + captures_.size());
    OpKernelContext::Params params;
    if (sequence == nullptr || !Read(arguments, count, &tensors) ||
        !held->Admits(tensors, &params)) {
      return nullptr;
    }
    tensors.insert(tensors.end(), captures_.begin(), captures_.end());
    static std::function<void(std::function<void()>)> run_here = [](const auto& f) { f(); };
    params.runner = &run_here;
    auto started = std::make_unique<Started>();
    started->run = OpSequence::Start(sequence, params, tensors, &outputs);
    if (started->run == nullptr) {
      const AsInExecutors modes;
      if (!sequence->Run(std::move(params), tensors, &outputs).ok()) return nullptr;
    }
    for (Tensor& output : outputs) {
      *results++ = Context()->CreateLocalHandleFromTFTensor(output, nullptr);
    }
    return started;
  }

  // False if the call has to be made another way: the results are worth nothing.
  static bool Finish(std::unique_ptr<Started> started) {
    if (started->run == nullptr) return true;
    const AsInExecutors modes;
    bool done;
    return started->run->Finish(&done).ok() && done;
  }

 private:
  ImmediateExecutionContext* Context() const {
    return static_cast<ImmediateExecutionContext*>(eager_.context);
  }

  std::shared_ptr<HeldSequence> Held() {
    std::lock_guard<std::mutex> lock(mutex_);
    std::shared_ptr<HeldSequence> held = held_.lock();
    if (held == nullptr) held_ = held = HeldSequences::Get().Find(function_);
    return held;
  }

  // Whether this thread's ops are queued: what was called before may not have run yet.
  bool IsAsync() const {
    void* executor = eager_.executor_of_thread(eager_.context);
    const bool is_async = eager_.executor_is_async(executor);
    eager_.delete_executor(executor);
    return is_async;
  }

  // The tensors of eager tensors; false for what is not one of this process.
  bool Read(void* const* eager_tensors, int count, std::vector<Tensor>* tensors) const {
    for (int i = 0; i < count; ++i) {
      auto* handle =
          static_cast<ImmediateExecutionTensorHandle*>(eager_.handle_of(eager_tensors[i]));
      if (!ImmediateExecutionTensorHandle::classof(handle)) return false;  // a custom device's
      absl::Status status;
      const AbstractTensorPtr resolved(handle->Resolve(&status));
      if (!status.ok()) return false;
      tensors->push_back(static_cast<tensorflow::TensorInterface*>(resolved.get())->Tensor());
    }
    return true;
  }

  const std::string function_;
  const BlockdnnEager eager_;
  std::vector<Tensor> captures_;
  std::mutex mutex_;
  std::weak_ptr<HeldSequence> held_;
};

}  // namespace
}  // namespace bd

void* BlockdnnMakeDirectCall(const char* function, const BlockdnnEager* eager,
                             void* const* captures, int32_t count) {
  auto call = std::make_unique<bd::DirectCall>(function, *eager);
  return call->Capture(captures, count) ? call.release() : nullptr;
}

void* BlockdnnStartDirectCall(void* call, void* const* arguments, int32_t count, void** results) {
  return static_cast<bd::DirectCall*>(call)->Start(arguments, count, results).release();
}

int32_t BlockdnnFinishDirectCall(void* started) {
  return bd::DirectCall::Finish(
      std::unique_ptr<bd::DirectCall::Started>(static_cast<bd::DirectCall::Started*>(started)));
}

void BlockdnnAbandonDirectCall(void* started) {
  delete static_cast<bd::DirectCall::Started*>(started);
}

void BlockdnnDropDirectCall(void* call) { delete static_cast<bd::DirectCall*>(call); }
