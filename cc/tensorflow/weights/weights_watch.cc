#include "cc/tensorflow/weights/weights_watch.h"

#include <cstring>
#include <mutex>
#include <utility>

#include "cc/tensorflow/weights/weights_cache.h"
#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow/core/framework/tensor_util.h"
#include "tensorflow/core/framework/types.h"

namespace bd {
namespace {

using tensorflow::Tensor;

bool AreEqual(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         tensorflow::DataTypeCanUseMemcpy(a.dtype()) &&
         (a.TotalBytes() == 0 || memcmp(a.data(), b.data(), a.TotalBytes()) == 0);
}

const void* BufferOf(const Tensor& tensor) { return tensorflow::DMAHelper::buffer(&tensor); }

std::atomic<FollowFunction> follow{nullptr};

}  // namespace

void WeightsWatch::Add(Variable variable, const Tensor& value) {
  Tensor held = StaysWhileHeld(value) ? value : tensorflow::tensor::DeepCopy(value);
  looks_.emplace_back();
  looks_.back().variable = variable.get();
  looks_.back().buffer = BufferOf(held);
  watched_.push_back({std::move(variable), std::move(held)});
}

bool WeightsWatch::Changed() {
  constexpr size_t kAhead = 12;
  for (size_t i = 0; i < looks_.size(); ++i) {
    if (i + kAhead < looks_.size()) {
      const char* const next = reinterpret_cast<const char*>(looks_[i + kAhead].variable);
      __builtin_prefetch(next, 1);
      __builtin_prefetch(next + 64, 1);
    }
    Look& look = looks_[i];
    const tensorflow::tf_shared_lock lock(*look.variable->mu());
    if (BufferOf(*look.variable->tensor()) != look.buffer.load(std::memory_order_acquire) &&
        HasOtherContents(i)) {
      return true;
    }
  }
  return false;
}

// The variable is locked.
bool WeightsWatch::HasOtherContents(size_t index) {
  Watched& watched = watched_[index];
  const Tensor& now = *watched.variable->tensor();
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  if (!AreEqual(now, watched.value)) return true;
  if (!watched.variable->copy_on_read_mode.load() && StaysWhileHeld(now)) {
    watched.value = now;
    looks_[index].buffer.store(BufferOf(now), std::memory_order_release);
  }
  return false;
}

void SetFollowFunction(FollowFunction function) { follow.store(function); }

const char* Follow(const void* variable) {
  const FollowFunction function = follow.load();
  return function == nullptr ? nullptr : function(variable);
}

}  // namespace bd
