#include "cc/tensorflow/regions/static_plans.h"

#include <algorithm>

namespace bd {

bool PreparedRuns::Lend(const OpKernelContext::Params& params, absl::Span<const Tensor> arguments,
                        Lease* lease) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto run = std::find_if(runs_.begin(), runs_.end(),
                                  [&](const auto& known) { return known->Takes(arguments); });
    if (run == runs_.end()) return false;
    if (busy_) return true;
    std::rotate(runs_.begin(), run, run + 1);
    busy_ = true;
    lease->runs_ = this;
    lease->run_ = runs_.front();
  }
  if (!lease->run_->Start(params, arguments, &memory_)) {
    lease->Release();
    GiveUp();
  }
  return true;
}

void PreparedRuns::Take(const OpKernelContext::Params& params, absl::Span<const Tensor> arguments,
                        Lease* lease, bool* record) {
  *record = false;
  if (Lend(params, arguments, lease)) return;
  std::lock_guard<std::mutex> lock(mutex_);
  const auto is = [&](const Described& seen) {
    return std::equal(seen.begin(), seen.end(), arguments.begin(), arguments.end(),
                      [](const auto& known, const Tensor& tensor) {
                        return known.first == tensor.dtype() && known.second == tensor.shape();
                      });
  };
  if (std::any_of(seen_.begin(), seen_.end(), is)) {
    *record = wait_ == 0;
    if (wait_ > 0) --wait_;
    return;
  }
  Described described;
  for (const Tensor& tensor : arguments) described.emplace_back(tensor.dtype(), tensor.shape());
  if (seen_.size() == kMostSeen) seen_.erase(seen_.begin());
  seen_.push_back(std::move(described));
}

void PreparedRuns::Add(std::shared_ptr<const PreparedRun> run, absl::Span<const Tensor> arguments) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto takes = [&](const auto& known) { return known->Takes(arguments); };
  if (std::any_of(runs_.begin(), runs_.end(), takes)) return;  // another thread's
  if (runs_.size() == kCapacity) runs_.pop_back();
  runs_.insert(runs_.begin(), std::move(run));
}

void PreparedRuns::GiveUp() {
  std::lock_guard<std::mutex> lock(mutex_);
  runs_.clear();
  wait_ = patience_;
  patience_ = std::min(2 * patience_ + 1, kMostPatience);
}

PreparedRuns::Lease::~Lease() {
  if (run_ == nullptr) return;
  run_->Abandon(&runs_->memory_);
  Release();
}

void PreparedRuns::Lease::Release() {
  run_.reset();
  std::lock_guard<std::mutex> lock(runs_->mutex_);
  runs_->busy_ = false;
}

std::vector<Tensor> PreparedRuns::Lease::Expected() const {
  if (run_ == nullptr || !run_->knows_results()) return {};
  return run_->Results(runs_->memory_);
}

absl::Status PreparedRuns::Lease::Finish(OpKernelContext::Params* params,
                                         std::vector<Tensor>* results, bool* done) {
  const absl::Status status = run_->Finish(params, &runs_->memory_, results, done);
  Release();
  if (!*done) runs_->GiveUp();
  return status;
}

}  // namespace bd
