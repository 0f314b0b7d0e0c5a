#include "cc/kernels/prepared_runs.h"

#include <algorithm>

namespace bd {

void PreparedRuns::Take(absl::Span<const Tensor> arguments, Lease* lease, bool* record) {
  *record = false;
  std::lock_guard<std::mutex> lock(mutex_);
  const auto run = std::find_if(runs_.begin(), runs_.end(),
                                [&](const auto& known) { return known->Takes(arguments); });
  if (run != runs_.end()) {
    if (busy_) return;
    std::rotate(runs_.begin(), run, run + 1);
    busy_ = true;
    lease->runs_ = this;
    lease->run_ = runs_.front();
    return;
  }
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

PreparedRuns::Lease::~Lease() {
  if (runs_ == nullptr) return;
  std::lock_guard<std::mutex> lock(runs_->mutex_);
  runs_->busy_ = false;
}

absl::Status PreparedRuns::Lease::Run(OpKernelContext::Params* params,
                                      absl::Span<const Tensor> arguments,
                                      std::vector<Tensor>* results, bool* done) {
  const absl::Status status = run_->Run(params, arguments, &runs_->memory_, results, done);
  if (*done) return status;
  std::lock_guard<std::mutex> lock(runs_->mutex_);
  runs_->runs_.clear();  // the weights of all of them are old
  runs_->wait_ = runs_->patience_;
  runs_->patience_ = std::min(2 * runs_->patience_ + 1, kMostPatience);
  return status;
}

}  // namespace bd
