#include "cc/tensorflow/weights/weights_cache.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "cc/base/pack_count.h"

namespace bd {

WeightsGlance WeightsGlance::At(const Tensor& weights) {
  constexpr int64_t kSamples = 64;
  WeightsGlance glance = {weights.data(), weights.NumElements(), 0};
  const float* const values = static_cast<const float*>(weights.data());
  const int64_t step = std::max<int64_t>(1, glance.elements / kSamples);
  for (int64_t i = 0; i < glance.elements; i += step) {
    uint32_t bits;
    memcpy(&bits, values + i, sizeof bits);
    glance.samples = (glance.samples ^ bits) * 0x100000001b3;  // FNV-1a's prime
  }
  return glance;
}

Status WeightsCache::Take(OpKernelContext* ctx, const Tensor& weights, const PackRequest& request,
                          WeightsLease* lease) {
  const float* const plain = static_cast<const float*>(weights.data()) + offset_;
  if (request.plain_bytes > 0) lease->plain = plain;
  if (request.bytes == 0) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!constant_) Look(weights);
    return absl::OkStatus();
  }
  bool worth_keeping;
  lease->kept = Find(weights, request, &worth_keeping);
  if (lease->kept == nullptr && worth_keeping) {
    TF_RETURN_IF_ERROR(PackRegistry::Get().FindOrPack(weights, offset_, request, &lease->kept));
    std::lock_guard<std::mutex> lock(mutex_);
    held_.push_back({lease->kept, uses_});
  }
  if (lease->kept != nullptr) lease->data = lease->kept->data();
  if (lease->data != nullptr || request.plain_bytes > 0) return absl::OkStatus();
  TF_RETURN_IF_ERROR(
      ctx->allocate_temp(tensorflow::DT_INT8, TensorShape({request.bytes}), &lease->packed_now));
  PreferHugePages(lease->packed_now.data(), lease->packed_now.TotalBytes());
  CountPack();
  request.pack(plain, lease->packed_now.data());
  lease->data = static_cast<const float*>(lease->packed_now.data());
  return absl::OkStatus();
}

bool WeightsCache::changing() {
  std::lock_guard<std::mutex> lock(mutex_);
  return changes_ == kChanging;
}

void WeightsCache::Release() {
  std::lock_guard<std::mutex> lock(mutex_);
  held_.clear();
}

std::shared_ptr<const PackedWeights> WeightsCache::Find(const Tensor& weights,
                                                        const PackRequest& request,
                                                        bool* worth_keeping) {
  std::lock_guard<std::mutex> lock(mutex_);
  ++uses_;
  // Of no use to anybody: packs of a buffer that is no longer the weights.
  const auto old = [&](const Held& held) {
    return held.pack->source.data() != weights.data() || uses_ - held.last_use > kSettled;
  };
  held_.erase(std::remove_if(held_.begin(), held_.end(), old), held_.end());
  for (Held& held : held_) {
    if (!held.pack->Holds(weights, offset_, request)) continue;
    held.last_use = uses_;
    changes_ = 0;
    return held.pack;
  }
  *worth_keeping = constant_ || !held_.empty();
  if (*worth_keeping) {
    changes_ = 0;
  } else {
    *worth_keeping = Look(weights);
  }
  return nullptr;
}

bool WeightsCache::Look(const Tensor& weights) {
  const WeightsGlance now = WeightsGlance::At(weights);
  const bool same = now == last_;
  last_ = now;
  changes_ = same ? 0 : std::min(changes_ + 1, kChanging);
  return same;
}

}  // namespace bd
