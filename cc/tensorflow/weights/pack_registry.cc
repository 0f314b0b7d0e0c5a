#include "cc/tensorflow/weights/pack_registry.h"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cc/base/pack_count.h"

namespace bd {

using tensorflow::Tensor;

// Packing that is under way in some thread.
class PackRegistry::Job {
 public:
  Job(const Tensor& weights, int64_t offset, const PackRequest& request)
      : source_(weights.data()),
        offset_(offset),
        shape_(request.shape),
        key_(request.key),
        bytes_(request.bytes) {}

  bool Makes(const Tensor& weights, int64_t offset, const PackRequest& wanted) const {
    return source_ == weights.data() && offset_ == offset && shape_ == wanted.shape &&
           key_ == wanted.key && bytes_ == wanted.bytes && process_ == getpid();
  }

  void Finish(const absl::Status& status, std::shared_ptr<const PackedWeights> made) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      status_ = status;
      made_ = std::move(made);
      done_ = true;
    }
    finished_.notify_all();
  }

  absl::Status Wait(std::shared_ptr<const PackedWeights>* made) {
    std::unique_lock<std::mutex> lock(mutex_);
    finished_.wait(lock, [this] { return done_; });
    *made = made_;
    return status_;
  }

 private:
  const void* const source_;
  const int64_t offset_;
  const std::array<int64_t, 5> shape_;
  const PackKey key_;
  const int64_t bytes_;
  const pid_t process_ = getpid();
  std::mutex mutex_;
  std::condition_variable finished_;
  bool done_ = false;
  absl::Status status_;
  std::shared_ptr<const PackedWeights> made_;
};

namespace {

absl::Status Pack(const Tensor& weights, int64_t offset, const PackRequest& request,
                  std::shared_ptr<const PackedWeights>* made) {
  const auto packed = std::make_shared<PackedWeights>();
  packed->source = weights;
  packed->offset = offset;
  packed->shape = request.shape;
  packed->key = request.key;
  packed->memory = AlignedBuffer(request.bytes);
  if (packed->data() == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for ", request.bytes, " bytes of packed weights"));
  }
  CountPack();
  request.pack(static_cast<const float*>(weights.data()) + offset, packed->memory.data());
  *made = packed;
  return absl::OkStatus();
}

}  // namespace

PackRegistry& PackRegistry::Get() {
  static PackRegistry* const registry = new PackRegistry;  // outlives every kernel
  return *registry;
}

absl::Status PackRegistry::FindOrPack(const Tensor& weights, int64_t offset,
                                      const PackRequest& request,
                                      std::shared_ptr<const PackedWeights>* found) {
  std::shared_ptr<Job> job;
  bool mine = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto gone = [](const auto& weak) { return weak.expired(); };
    packs_.erase(std::remove_if(packs_.begin(), packs_.end(), gone), packs_.end());
    for (const auto& weak : packs_) {
      *found = weak.lock();
      if (*found != nullptr && (*found)->Holds(weights, offset, request)) return absl::OkStatus();
    }
    found->reset();
    const auto makes = [&](const auto& other) { return other->Makes(weights, offset, request); };
    const auto other = std::find_if(jobs_.begin(), jobs_.end(), makes);
    mine = other == jobs_.end();
    if (mine) jobs_.push_back(std::make_shared<Job>(weights, offset, request));
    job = mine ? jobs_.back() : *other;
  }
  if (!mine) return job->Wait(found);
  const absl::Status status = Pack(weights, offset, request, found);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (status.ok()) packs_.push_back(*found);
    jobs_.erase(std::find(jobs_.begin(), jobs_.end(), job));
  }
  job->Finish(status, *found);
  return status;
}

int64_t PackRegistry::size() {
  std::lock_guard<std::mutex> lock(mutex_);
  return std::count_if(packs_.begin(), packs_.end(),
                       [](const auto& weak) { return !weak.expired(); });
}

}  // namespace bd
