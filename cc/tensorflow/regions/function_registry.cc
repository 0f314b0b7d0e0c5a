#include "cc/tensorflow/regions/function_registry.h"

#include <algorithm>

namespace bd {

using tensorflow::OpKernelContext;
using tensorflow::Tensor;

std::shared_ptr<const OpSequence> HeldSequence::Get() {
  std::lock_guard<std::mutex> lock(mutex_);
  return sequence_;
}

void HeldSequence::Release() {
  std::lock_guard<std::mutex> lock(mutex_);
  sequence_.reset();
}

bool HeldSequence::Arguments::Begin(absl::Span<const Tensor> arguments) const {
  if (arguments.size() > described.size()) return false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].dtype() != described[i].first) return false;
    if (arguments[i].shape() != described[i].second) return false;
  }
  return true;
}

void HeldSequence::Admit(const OpKernelContext& ctx) {
  Arguments made;
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    made.described.emplace_back(ctx.input_dtype(i), ctx.input(i).shape());
  }
  std::lock_guard<std::mutex> lock(mutex_);
  device_ = ctx.device();
  resources_ = ctx.resource_manager();
  const auto same = [&](const Arguments& known) { return known.described == made.described; };
  if (std::any_of(admitted_.begin(), admitted_.end(), same)) return;
  if (admitted_.size() == kCapacity) admitted_.pop_back();
  admitted_.insert(admitted_.begin(), std::move(made));
}

bool HeldSequence::Admits(absl::Span<const Tensor> arguments, OpKernelContext::Params* params) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto known = std::find_if(admitted_.begin(), admitted_.end(),
                                  [&](const Arguments& known) { return known.Begin(arguments); });
  if (known == admitted_.end()) return false;
  std::rotate(admitted_.begin(), known, known + 1);
  params->device = device_;
  params->resource_manager = resources_;
  return true;
}

HeldSequences& HeldSequences::Get() {
  static HeldSequences* sequences = new HeldSequences;  // outlives every kernel
  return *sequences;
}

void HeldSequences::Add(const std::shared_ptr<HeldSequence>& held) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto gone = [](const auto& other) { return other.expired(); };
  held_.erase(std::remove_if(held_.begin(), held_.end(), gone), held_.end());
  held_.push_back(held);
}

std::shared_ptr<HeldSequence> HeldSequences::Find(const std::string& function) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& weak : held_) {
    std::shared_ptr<HeldSequence> held = weak.lock();
    if (held != nullptr && held->function() == function && held->Get() != nullptr) return held;
  }
  return nullptr;
}

void HeldSequences::Release(const std::string& function) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& weak : held_) {
    const std::shared_ptr<HeldSequence> held = weak.lock();
    if (held != nullptr && held->function() == function) held->Release();
  }
}

}  // namespace bd
