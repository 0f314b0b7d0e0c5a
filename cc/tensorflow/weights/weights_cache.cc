#include "cc/tensorflow/weights/weights_cache.h"

#include <algorithm>
#include <cstring>

#include "cc/tensorflow/weights/contents.h"
#include "cc/tensorflow/weights/pack_registry.h"
#include "cc/tensorflow/weights/weights_file.h"
#include "tensorflow/core/common_runtime/dma_helper.h"

namespace bd {
namespace {

// Of `elements` of the tensor, or of all that there are, from the first one on.
int64_t BytesOf(const Tensor& tensor, int64_t first, int64_t elements) {
  const int64_t all = tensor.NumElements() - first;
  return (elements < 0 ? all : std::min(all, elements)) * tensorflow::DataTypeSize(tensor.dtype());
}

uint64_t HashOf(const Tensor& tensor, int64_t first, int64_t elements, ThreadPool& pool) {
  return HashOf(ElementAt(tensor, first), BytesOf(tensor, first, elements), pool);
}

// For PackId.
uint64_t ContentsOf(const Tensor& weights, int64_t first, int64_t elements, const Tensor* more,
                    ThreadPool& pool) {
  if (StaysWhileHeld(weights) && (more == nullptr || StaysWhileHeld(*more))) return 0;
  uint64_t hash = HashOf(weights, first, elements, pool);
  if (more != nullptr) hash = MixHash(hash, HashOf(*more, 0, -1, pool));
  return std::max<uint64_t>(1, hash);
}

}  // namespace

bool StaysWhileHeld(const Tensor& tensor) {
  auto* const buffer =
      const_cast<tensorflow::TensorBuffer*>(tensorflow::DMAHelper::buffer(&tensor));
  return buffer == nullptr || buffer->root_buffer()->OwnsMemory();
}

WeightsFingerprint WeightsFingerprint::At(const Tensor& weights) {
  constexpr int64_t kSamples = 64;
  WeightsFingerprint fingerprint = {weights.data(), weights.NumElements(), 0};
  const int64_t size = tensorflow::DataTypeSize(weights.dtype());
  const int64_t step = std::max<int64_t>(1, fingerprint.elements / kSamples);
  for (int64_t i = 0; i < fingerprint.elements; i += step) {
    uint32_t bits = 0;
    memcpy(&bits, ElementAt(weights, i), std::min<int64_t>(size, sizeof bits));
    fingerprint.samples = (fingerprint.samples ^ bits) * 0x100000001b3;  // FNV-1a's prime
  }
  return fingerprint;
}

Status WeightsCache::Take(OpKernelContext* ctx, const Tensor& weights, const PackRequest& request,
                          WeightsLease* lease) {
  const void* const plain = ElementAt(weights, offset_);
  WeightsFile* const file = WeightsFile::Of(weights);
  // Packed ones, too, since biases lie in the same file.
  if (file != nullptr) TF_RETURN_IF_ERROR(file->Check());
  if (request.plain_bytes > 0) lease->plain = plain;
  if (request.bytes == 0) {
    std::lock_guard<ForkSafeMutex> lock(mutex_);
    if (change_ != WeightsChange::kNever) Look(weights, request);
    return absl::OkStatus();
  }
  uint64_t contents = 0;
  if (change_ != WeightsChange::kNever) {
    contents = ContentsOf(weights, offset_, elements_, request.more, SharedPool(ctx->device()));
  }
  const PackId id(weights, offset_, contents, request);
  bool worth_keeping;
  lease->kept = Find(id, weights, request, &worth_keeping);
  if (lease->kept == nullptr && worth_keeping) {
    const int64_t bytes = BytesOf(weights, offset_, elements_);
    TF_RETURN_IF_ERROR(PackRegistry::Get().FindOrPack(id, weights, bytes, request,
                                                      SharedPool(ctx->device()), &lease->kept));
    if (file != nullptr && request.plain_bytes == 0) file->Drop(plain, bytes);
    std::lock_guard<ForkSafeMutex> lock(mutex_);
    held_.push_back({lease->kept, uses_});
  }
  if (lease->kept != nullptr) lease->data = lease->kept->memory.get();
  if (lease->data != nullptr || request.plain_bytes > 0) return absl::OkStatus();
  TF_RETURN_IF_ERROR(
      ctx->allocate_temp(tensorflow::DT_INT8, TensorShape({request.bytes}), &lease->packed_now));
  PreferHugePages(lease->packed_now.data(), lease->packed_now.TotalBytes());
  CountPack();
  request.pack(plain, lease->packed_now.data());
  lease->data = lease->packed_now.data();
  return absl::OkStatus();
}

bool WeightsCache::changing() {
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  return changes_ == kChanging;
}

void WeightsCache::Release() {
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  held_.clear();
}

std::shared_ptr<const PackedWeights> WeightsCache::Find(const PackId& id, const Tensor& weights,
                                                        const PackRequest& request,
                                                        bool* worth_keeping) {
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  ++uses_;
  // Of no use to anybody: packs of what are no longer the weights.
  const auto old = [&](const Held& held) {
    const PackId& was = held.pack->id;
    return was.source != id.source || was.more != id.more || was.contents != id.contents ||
           uses_ - held.last_use > kSettled;
  };
  held_.erase(std::remove_if(held_.begin(), held_.end(), old), held_.end());
  for (Held& held : held_) {
    if (!(held.pack->id == id)) continue;
    held.last_use = uses_;
    changes_ = 0;
    return held.pack;
  }
  *worth_keeping = change_ == WeightsChange::kNever || !held_.empty();
  if (*worth_keeping) {
    changes_ = 0;
  } else {
    *worth_keeping =
        Look(weights, request) || (change_ == WeightsChange::kSeldom && changes_ < kChanging);
  }
  return nullptr;
}

bool WeightsCache::Look(const Tensor& weights, const PackRequest& request) {
  std::array<WeightsFingerprint, 2> now = {WeightsFingerprint::At(weights)};
  if (request.more != nullptr) now[1] = WeightsFingerprint::At(*request.more);
  const bool same = now == last_;
  last_ = now;
  changes_ = same ? 0 : std::min(changes_ + 1, kChanging);
  return same;
}

}  // namespace bd
