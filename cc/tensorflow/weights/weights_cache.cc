#include "cc/tensorflow/weights/weights_cache.h"

#include <algorithm>
#include <utility>

#include "cc/base/pack_count.h"

namespace bd {
namespace {

// All packs of the process that some kernel holds.
class Registry {
 public:
  static Registry& Get() {
    static Registry* registry = new Registry;  // outlives every kernel
    return *registry;
  }

  // The lock is held while packing, so that no weight is packed twice.
  Status FindOrPack(const PackRequest& request, const Tensor& weights, int64_t offset,
                    std::shared_ptr<const PackedWeights>* found) {
    std::lock_guard<std::mutex> lock(mutex_);
    for (size_t i = 0; i < packs_.size();) {
      const std::shared_ptr<const PackedWeights> pack = packs_[i].lock();
      if (pack == nullptr) {
        std::swap(packs_[i], packs_.back());
        packs_.pop_back();
        continue;
      }
      if (pack->Holds(weights, request.key) && pack->offset == offset &&
          pack->shape == request.shape) {
        *found = pack;
        return absl::OkStatus();
      }
      ++i;
    }
    auto pack = std::make_shared<PackedWeights>();
    pack->source = weights;
    pack->offset = offset;
    pack->shape = request.shape;
    pack->key = request.key;
    pack->memory = AlignedBuffer(request.bytes);
    if (pack->data() == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no memory for ", request.bytes, " bytes of packed weights"));
    }
    CountPack();
    PreferHugePages(pack->data(), pack->memory.size());
    const float* plain = static_cast<const float*>(weights.data()) + offset;
    request.pack(plain, pack->memory.As<float>());
    packs_.push_back(pack);
    *found = std::move(pack);
    return absl::OkStatus();
  }

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<const PackedWeights>> packs_;
};

}  // namespace

Status WeightsCache::Take(OpKernelContext* ctx, int weights, const PackRequest& request,
                          WeightsLease* lease) {
  const float* plain = InputData(ctx, weights) + offset_;
  if (request.plain_bytes > 0) {
    PreferHugePages(plain, request.plain_bytes);
    lease->plain = plain;
  }
  if (request.bytes == 0) return absl::OkStatus();
  TF_RETURN_IF_ERROR(Get(request, ctx->input(weights), &lease->kept));
  if (lease->kept != nullptr) lease->data = lease->kept->data();
  if (lease->data != nullptr || request.plain_bytes > 0) return absl::OkStatus();
  const int64_t floats = request.bytes / static_cast<int64_t>(sizeof(float));
  TF_RETURN_IF_ERROR(
      ctx->allocate_temp(tensorflow::DT_FLOAT, TensorShape({floats}), &lease->packed_now));
  CountPack();
  float* packed = static_cast<float*>(lease->packed_now.data());
  request.pack(plain, packed);
  lease->data = packed;
  return absl::OkStatus();
}

Status WeightsCache::Get(const PackRequest& request, const Tensor& weights,
                         std::shared_ptr<const PackedWeights>* pack) {
  *pack = nullptr;
  std::lock_guard<std::mutex> lock(mutex_);
  const auto hit = std::find_if(packs_.begin(), packs_.end(), [&](const auto& held) {
    return held->Holds(weights, request.key);
  });
  if (hit != packs_.end()) {
    std::rotate(packs_.begin(), hit, hit + 1);
    *pack = packs_.front();
    return absl::OkStatus();
  }
  // Packs of a buffer that is no longer the weights are of no use to anybody.
  const auto stale = [&](const auto& held) { return held->source.data() != weights.data(); };
  packs_.erase(std::remove_if(packs_.begin(), packs_.end(), stale), packs_.end());
  if (!constant_ && last_.data() != weights.data()) {
    last_ = weights;
    return absl::OkStatus();
  }
  TF_RETURN_IF_ERROR(Registry::Get().FindOrPack(request, weights, offset_, pack));
  last_ = Tensor();
  if (packs_.size() == kCapacity) packs_.pop_back();
  packs_.insert(packs_.begin(), *pack);
  return absl::OkStatus();
}

}  // namespace bd
