#include "cc/tensorflow/weights/weights_cache.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "cc/tensorflow/weights/pack_registry.h"
#include "cc/tensorflow/weights/weights_file.h"
#include "tensorflow/core/common_runtime/dma_helper.h"

namespace bd {
namespace {

uint64_t Mix(uint64_t hash, uint64_t value) {
  return ((hash << 29 | hash >> 35) ^ value) * 0x9e3779b97f4a7c15;
}

// Whatever changes in one word of 8 bytes changes the hash; other changes are missed once in 2^64.
uint64_t HashOf(const char* data, int64_t bytes) {
  constexpr int kLanes = 8;  // products that do not wait for each other
  constexpr int64_t kBlock = kLanes * sizeof(uint64_t);
  uint64_t lanes[kLanes] = {}, words[kLanes] = {};
  const auto add = [&] {
#pragma GCC unroll 8
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] = Mix(lanes[lane], words[lane]);
  };
  for (; bytes >= kBlock; bytes -= kBlock, data += kBlock) {
    memcpy(words, data, kBlock);
    add();
  }
  memcpy(words, data, bytes);
  add();
  uint64_t hash = 1;
  for (uint64_t lane : lanes) hash = Mix(hash, lane);
  return hash;
}

// Of `elements` of the tensor, or of all that there are, from the first one on.
int64_t BytesOf(const Tensor& tensor, int64_t first, int64_t elements) {
  const int64_t all = tensor.NumElements() - first;
  return (elements < 0 ? all : std::min(all, elements)) * tensorflow::DataTypeSize(tensor.dtype());
}

uint64_t HashOf(const Tensor& tensor, int64_t first, int64_t elements, ThreadPool& pool) {
  constexpr int64_t kChunk = 128 * 1024;
  const char* const data = static_cast<const char*>(ElementAt(tensor, first));
  const int64_t bytes = BytesOf(tensor, first, elements);
  std::vector<uint64_t> hashes((bytes + kChunk - 1) / kChunk);
  pool.ParallelFor(hashes.size(), [&](int64_t i, int) {
    hashes[i] = HashOf(data + i * kChunk, std::min(kChunk, bytes - i * kChunk));
  });
  return HashOf(reinterpret_cast<const char*>(hashes.data()), hashes.size() * sizeof(uint64_t));
}

// For PackId.
uint64_t ContentsOf(const Tensor& weights, int64_t first, int64_t elements, const Tensor* more,
                    ThreadPool& pool) {
  if (StaysWhileHeld(weights) && (more == nullptr || StaysWhileHeld(*more))) return 0;
  uint64_t hash = HashOf(weights, first, elements, pool);
  if (more != nullptr) hash = Mix(hash, HashOf(*more, 0, -1, pool));
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
    TF_RETURN_IF_ERROR(PackRegistry::Get().FindOrPack(id, weights, request, &lease->kept));
    WeightsFile* const file = WeightsFile::Of(weights);
    if (file != nullptr && request.plain_bytes == 0) {
      file->Drop(plain, BytesOf(weights, offset_, elements_));
    }
    std::lock_guard<ForkSafeMutex> lock(mutex_);
    held_.push_back({lease->kept, uses_});
  }
  if (lease->kept != nullptr) lease->data = lease->kept->memory.data();
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
