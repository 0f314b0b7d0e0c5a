// The plans a kernel has made, by the shapes of its inputs.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "cc/base/fork_safe_mutex.h"
#include "cc/base/function_ref.h"
#include "cc/tensorflow/op_base/op_utils.h"

namespace bd {

// A plan is made once for the exact shapes of all inputs and checks them on the
// way, so a hit needs no further checks: it costs a lock and a comparison of
// dimensions. The most recently used kCapacity plans are kept, so memory stays
// flat when shapes keep changing.
template <typename Plan>
class PlanCache {
 public:
  static constexpr size_t kCapacity = 64;

  // Puts the plan for the inputs of ctx into *plan, from `make` if need be.
  Status Get(OpKernelContext* ctx, FunctionRef<Status(Plan*)> make,
             std::shared_ptr<const Plan>* plan) {
    if ((*plan = Find(ctx)) != nullptr) return absl::OkStatus();
    auto made = std::make_shared<Plan>();
    TF_RETURN_IF_ERROR(make(made.get()));
    *plan = std::move(made);
    Insert(ctx, *plan);
    return absl::OkStatus();
  }

 private:
  struct Entry {
    std::vector<TensorShape> shapes;
    std::shared_ptr<const Plan> plan;
  };

  static bool Matches(OpKernelContext* ctx, const Entry& entry) {
    for (size_t i = 0; i < entry.shapes.size(); ++i) {
      if (ctx->input(i).shape() != entry.shapes[i]) return false;
    }
    return true;
  }

  std::shared_ptr<const Plan> Find(OpKernelContext* ctx) {
    std::lock_guard<ForkSafeMutex> lock(mutex_);
    const auto hit = std::find_if(entries_.begin(), entries_.end(),
                                  [ctx](const Entry& entry) { return Matches(ctx, entry); });
    if (hit == entries_.end()) return nullptr;
    std::rotate(entries_.begin(), hit, hit + 1);
    return entries_.front().plan;
  }

  void Insert(OpKernelContext* ctx, std::shared_ptr<const Plan> plan) {
    Entry entry;
    entry.plan = std::move(plan);
    for (int i = 0; i < ctx->num_inputs(); ++i) entry.shapes.push_back(ctx->input(i).shape());
    std::lock_guard<ForkSafeMutex> lock(mutex_);
    if (entries_.size() == kCapacity) entries_.pop_back();
    entries_.insert(entries_.begin(), std::move(entry));
  }

  ForkSafeMutex mutex_;
  std::vector<Entry> entries_;  // most recently used first
};

}  // namespace bd
