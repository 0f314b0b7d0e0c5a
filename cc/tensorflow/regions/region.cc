#include "cc/tensorflow/regions/region.h"

#include <algorithm>

#include "cc/tensorflow/regions/free_memory.h"

namespace bd {

using tensorflow::OpKernelContext;

int MostArenas(const tensorflow::DeviceBase* device) {
  const auto* const workers = device->tensorflow_cpu_worker_threads();
  return workers == nullptr ? 1 : workers->num_threads;
}

Region::Region(OpSequence sequence, int most_arenas)
    : sequence_(std::move(sequence)), most_arenas_(std::max(most_arenas, 0)) {}

absl::Status Region::Run(OpKernelContext::Params params, absl::Span<const Tensor> arguments,
                         std::vector<Tensor>* results) {
  sequence_.Complete(&params);
  if (most_arenas_ == 0 || !sequence_.is_repeatable()) {
    return sequence_.Run(&params, arguments, nullptr, results);
  }
  bool record;
  const std::shared_ptr<const StaticPlan> plan = Find(arguments, &record);
  if (plan != nullptr) {
    std::unique_ptr<Arena> arena = TakeArena();
    bool done;
    const absl::Status status = plan->Run(&params, arguments, arena.get(), results, &done);
    GiveBack(std::move(arena));
    if (done) return status;
    GiveUp();
  }
  if (!record) return sequence_.Run(&params, arguments, nullptr, results);
  Recording recording(arguments, sequence_.num_tensors());
  TF_RETURN_IF_ERROR(sequence_.Run(&params, arguments, &recording, results));
  Add(StaticPlan::Make(sequence_.steps(), sequence_.results(), arguments.size(),
                       std::move(recording)),
      arguments);
  return absl::OkStatus();
}

bool Region::Known::Describes(absl::Span<const Tensor> tensors) const {
  return std::equal(arguments.begin(), arguments.end(), tensors.begin(), tensors.end(),
                    [](const auto& known, const Tensor& tensor) {
                      return known.first == tensor.dtype() && known.second == tensor.shape();
                    });
}

std::shared_ptr<const StaticPlan> Region::Find(absl::Span<const Tensor> arguments, bool* record) {
  *record = false;
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  ++runs_;
  const auto known = std::find_if(known_.begin(), known_.end(),
                                  [&](const Known& k) { return k.Describes(arguments); });
  if (known != known_.end()) {
    std::rotate(known_.begin(), known, known + 1);
    known_.front().last_run = runs_;
    for (Known& other : known_) {
      if (runs_ - other.last_run > kSettled) other.plan.reset();
    }
    if (known_.front().plan == nullptr) {
      *record = wait_ == 0;
      if (wait_ > 0) --wait_;
    }
    return known_.front().plan;
  }
  Known made;
  for (const Tensor& t : arguments) made.arguments.emplace_back(t.dtype(), t.shape());
  if (known_.size() == kMostKnown) known_.pop_back();
  known_.insert(known_.begin(), std::move(made));
  return nullptr;
}

void Region::Add(std::shared_ptr<const StaticPlan> plan, absl::Span<const Tensor> arguments) {
  if (plan == nullptr) return;
  bool is_first = true;
  {
    std::lock_guard<ForkSafeMutex> lock(mutex_);
    for (Known& known : known_) {
      is_first = is_first && known.plan == nullptr;
      if (known.plan == nullptr && known.Describes(arguments)) known.plan = std::move(plan);
    }
    sequence_.ReleaseWeights();
  }
  // From now on tensors lie in an arena: what they had for packing and for the runs so far is free.
  // Of further shapes that is little, and asking often makes TensorFlow's allocator grow.
  if (is_first) ReturnFreeMemory();
}

void Region::GiveUp() {
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  for (Known& known : known_) known.plan.reset();
  if (runs_ - given_up_ > 4 * kMostPatience) patience_ = 0;
  given_up_ = runs_;
  wait_ = patience_;
  patience_ = std::min(2 * patience_ + 1, kMostPatience);
}

std::unique_ptr<Arena> Region::TakeArena() {
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  if (arenas_.empty()) return std::make_unique<Arena>();
  std::unique_ptr<Arena> arena = std::move(arenas_.back());
  arenas_.pop_back();
  return arena;
}

void Region::GiveBack(std::unique_ptr<Arena> arena) {
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  if (arenas_.size() < most_arenas_) arenas_.push_back(std::move(arena));
}

}  // namespace bd
