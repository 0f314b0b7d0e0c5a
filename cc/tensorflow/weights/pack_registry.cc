#include "cc/tensorflow/weights/pack_registry.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cc/base/memory/aligned_buffer.h"
#include "cc/tensorflow/weights/contents.h"
#include "cc/tensorflow/weights/pack_folder.h"
#include "cc/tensorflow/weights/weights_file.h"
#include "tensorflow/core/framework/types.h"

namespace bd {

using tensorflow::Tensor;

const void* ElementAt(const Tensor& tensor, int64_t element) {
  return static_cast<const char*>(tensor.data()) +
         element * tensorflow::DataTypeSize(tensor.dtype());
}

PackId::PackId(const Tensor& weights, int64_t offset, uint64_t contents, const PackRequest& request)
    : source(weights.data()),
      more(request.more == nullptr ? nullptr : request.more->data()),
      offset(offset),
      contents(contents),
      shape(request.shape),
      key(request.key),
      bytes(request.bytes) {}

bool PackId::operator==(const PackId& other) const {
  const auto all = [](const PackId& id) {
    return std::tie(id.source, id.more, id.offset, id.contents, id.shape, id.key, id.bytes);
  };
  return all(*this) == all(other);
}

// Packing that is under way in some thread. Only threads of its own process wait for it.
class PackRegistry::Job {
 public:
  explicit Job(const PackId& id) : id_(id) {}

  bool Makes(const PackId& id) const { return id_ == id && process_ == getpid(); }

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
  const PackId id_;
  const pid_t process_ = getpid();
  std::mutex mutex_;
  std::condition_variable finished_;
  bool done_ = false;
  absl::Status status_;
  std::shared_ptr<const PackedWeights> made_;
};

namespace {

absl::Status Pack(const void* plain, const PackRequest& request,
                  std::shared_ptr<const void>* packed) {
  const auto memory = std::make_shared<AlignedBuffer>(request.bytes);
  if (memory->data() == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for ", request.bytes, " bytes of packed weights"));
  }
  CountPack();
  request.pack(plain, memory->data());
  *packed = std::shared_ptr<const void>(memory, memory->data());
  return absl::OkStatus();
}

// Of weights in a file: packed ones may lie in files, too.
absl::Status PackFrom(WeightsFile* file, const void* plain, int64_t bytes,
                      const PackRequest& request, ThreadPool& pool,
                      std::shared_ptr<const void>* packed) {
  TF_RETURN_IF_ERROR(file->Check());
  PackFolder* const folder = file->packs();
  if (folder == nullptr) return Pack(plain, request, packed);
  uint64_t contents = HashOf(plain, bytes, pool);
  if (const Tensor* more = request.more) {
    contents = MixHash(contents, HashOf(more->data(), more->TotalBytes(), pool));
  }
  const PackOrigin origin(request.key, request.shape, request.bytes,
                          request.exponent ? request.exponent() : 0, contents);
  *packed = folder->Find(origin, pool);
  if (*packed != nullptr) return absl::OkStatus();
  TF_RETURN_IF_ERROR(Pack(plain, request, packed));
  TF_RETURN_IF_ERROR(file->Check());
  auto mapped = folder->Add(origin, packed->get(), pool);
  if (mapped != nullptr) *packed = std::move(mapped);
  return absl::OkStatus();
}

}  // namespace

PackRegistry& PackRegistry::Get() {
  static PackRegistry* const registry = new PackRegistry;  // outlives every kernel
  return *registry;
}

absl::Status PackRegistry::FindOrPack(const PackId& id, const Tensor& weights, int64_t bytes,
                                      const PackRequest& request, ThreadPool& pool,
                                      std::shared_ptr<const PackedWeights>* result) {
  std::shared_ptr<Job> job;
  bool mine = false;
  {
    std::lock_guard<ForkSafeMutex> lock(mutex_);
    const auto gone = [](const auto& weak) { return weak.expired(); };
    packs_.erase(std::remove_if(packs_.begin(), packs_.end(), gone), packs_.end());
    for (const auto& weak : packs_) {
      *result = weak.lock();
      if (*result != nullptr && (*result)->id == id) return absl::OkStatus();
    }
    result->reset();
    const auto makes = [&](const auto& other) { return other->Makes(id); };
    const auto other = std::find_if(jobs_.begin(), jobs_.end(), makes);
    mine = other == jobs_.end();
    if (mine) jobs_.push_back(std::make_shared<Job>(id));
    job = mine ? jobs_.back() : *other;
  }
  if (!mine) return job->Wait(result);
  const void* const plain = ElementAt(weights, id.offset);
  WeightsFile* const file = id.contents == 0 ? WeightsFile::Of(weights) : nullptr;
  std::shared_ptr<const void> packed;
  const absl::Status status = file == nullptr
                                  ? Pack(plain, request, &packed)
                                  : PackFrom(file, plain, bytes, request, pool, &packed);
  if (status.ok()) {
    const Tensor more = request.more == nullptr ? Tensor() : *request.more;
    *result = std::make_shared<PackedWeights>(PackedWeights{id, weights, more, std::move(packed)});
  }
  {
    std::lock_guard<ForkSafeMutex> lock(mutex_);
    if (status.ok()) packs_.push_back(*result);
    jobs_.erase(std::find(jobs_.begin(), jobs_.end(), job));
  }
  job->Finish(status, *result);
  return status;
}

int64_t PackRegistry::size() {
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  return std::count_if(packs_.begin(), packs_.end(),
                       [](const auto& weak) { return !weak.expired(); });
}

namespace {
std::atomic<int64_t> packs{0};
}  // namespace

void CountPack() { packs.fetch_add(1, std::memory_order_relaxed); }
int64_t PackCount() { return packs.load(std::memory_order_relaxed); }

}  // namespace bd
