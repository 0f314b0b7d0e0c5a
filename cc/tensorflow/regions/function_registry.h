// The sequences that BlockdnnCall kernels hold, by function. TensorFlow keeps the kernels of
// eager ops for good: without Release each function that was ever called in line would keep
// its packed weights.
#ifndef CC_TENSORFLOW_REGIONS_FUNCTION_REGISTRY_H_
#define CC_TENSORFLOW_REGIONS_FUNCTION_REGISTRY_H_

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "cc/tensorflow/regions/op_sequence.h"

namespace bd {

// One kernel's sequence, for as long as somebody may call it, and what the kernel's runs
// tell about later ones. Safe to use from many threads.
class HeldSequence {
 public:
  HeldSequence(std::string function, std::shared_ptr<const OpSequence> sequence)
      : function_(std::move(function)), sequence_(std::move(sequence)) {}

  const std::string& function() const { return function_; }

  // Null once it was released.
  std::shared_ptr<const OpSequence> Get();
  void Release();

  // A run through the kernel has succeeded on these arguments.
  void Admit(const tensorflow::OpKernelContext& ctx);

  // Whether arguments of these types and shapes have run before, captures left out; then
  // where they ran. The most recent kCapacity are remembered.
  bool Admits(absl::Span<const tensorflow::Tensor> arguments,
              tensorflow::OpKernelContext::Params* params);

 private:
  static constexpr size_t kCapacity = 16;

  struct Arguments {
    std::vector<std::pair<tensorflow::DataType, tensorflow::TensorShape>> described;
    bool Begin(absl::Span<const tensorflow::Tensor> arguments) const;
  };

  const std::string function_;
  std::mutex mutex_;
  std::shared_ptr<const OpSequence> sequence_;
  std::vector<Arguments> admitted_;  // most recently used first
  tensorflow::DeviceBase* device_ = nullptr;
  tensorflow::ResourceMgr* resources_ = nullptr;
};

// All sequences of this process.
class HeldSequences {
 public:
  static HeldSequences& Get();

  void Add(const std::shared_ptr<HeldSequence>& held);

  // One that is not released; null if there is none.
  std::shared_ptr<HeldSequence> Find(const std::string& function);

  void Release(const std::string& function);

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<HeldSequence>> held_;
};

}  // namespace bd

#endif  // CC_TENSORFLOW_REGIONS_FUNCTION_REGISTRY_H_
