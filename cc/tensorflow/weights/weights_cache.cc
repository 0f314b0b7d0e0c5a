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
  Status FindOrPack(const ConvPlan& plan, const Tensor& weights, int64_t offset, const float* src,
                    ThreadPool& pool, std::shared_ptr<const PackedWeights>* found) {
    const ConvDesc& d = plan.desc;
    const std::array<int64_t, 5> shape = {d.kh, d.kw, d.ic / d.groups, d.oc, d.groups};
    std::lock_guard<std::mutex> lock(mutex_);
    for (size_t i = 0; i < packs_.size();) {
      const std::shared_ptr<const PackedWeights> pack = packs_[i].lock();
      if (pack == nullptr) {
        std::swap(packs_[i], packs_.back());
        packs_.pop_back();
        continue;
      }
      if (pack->Holds(weights, plan.packing) && pack->offset == offset && pack->shape == shape) {
        *found = pack;
        return absl::OkStatus();
      }
      ++i;
    }
    auto pack = std::make_shared<PackedWeights>();
    pack->source = weights;
    pack->offset = offset;
    pack->shape = shape;
    pack->packing = plan.packing;
    pack->memory = AlignedBuffer(plan.packed_floats * sizeof(float));
    if (pack->data() == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no memory for ", plan.packed_floats, " packed weights"));
    }
    CountPack();
    PreferHugePages(pack->data(), pack->memory.size());
    const float* plain = static_cast<const float*>(weights.data()) + offset;
    PackConvWeights(plan, plain, pack->memory.As<float>(), pool, src);
    packs_.push_back(pack);
    *found = std::move(pack);
    return absl::OkStatus();
  }

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<const PackedWeights>> packs_;
};

}  // namespace

Status WeightsCache::Take(OpKernelContext* ctx, int weights, const float* src, const ConvPlan& plan,
                          ThreadPool& pool, WeightsLease* lease) {
  const float* plain = InputData(ctx, weights) + offset_;
  if (plan.packing.as_is()) {
    PreferHugePages(plain, 4 * plan.desc.ic * plan.desc.oc);
    lease->plain = plain;
    if (plan.packed_floats == 0) return absl::OkStatus();
  }
  TF_RETURN_IF_ERROR(Get(plan, ctx->input(weights), src, pool, &lease->kept));
  if (lease->kept != nullptr) lease->data = lease->kept->data();
  if (lease->data != nullptr || plan.packing.as_is()) return absl::OkStatus();
  TF_RETURN_IF_ERROR(ctx->allocate_temp(tensorflow::DT_FLOAT, TensorShape({plan.packed_floats}),
                                        &lease->packed_now));
  CountPack();
  float* packed = static_cast<float*>(lease->packed_now.data());
  PackConvWeights(plan, plain, packed, pool, src);
  lease->data = packed;
  return absl::OkStatus();
}

Status WeightsCache::Get(const ConvPlan& plan, const Tensor& weights, const float* src,
                         ThreadPool& pool, std::shared_ptr<const PackedWeights>* pack) {
  *pack = nullptr;
  std::lock_guard<std::mutex> lock(mutex_);
  const auto hit = std::find_if(packs_.begin(), packs_.end(), [&](const auto& held) {
    return held->Holds(weights, plan.packing);
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
  TF_RETURN_IF_ERROR(Registry::Get().FindOrPack(plan, weights, offset_, src, pool, pack));
  last_ = Tensor();
  if (packs_.size() == kCapacity) packs_.pop_back();
  packs_.insert(packs_.begin(), *pack);
  return absl::OkStatus();
}

}  // namespace bd
