#include "cc/base/memory/slabs.h"

#include <sys/mman.h>

#include <cstdint>
#include <iterator>

namespace bd {
namespace {

bool BeginsSlab(const char* data) { return reinterpret_cast<uintptr_t>(data) % Slabs::kSlab == 0; }

}  // namespace

Slabs& Slabs::Get() {
  static Slabs* const slabs = new Slabs;  // outlives every buffer
  return *slabs;
}

void* Slabs::Take(size_t bytes) {
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  auto best = free_.end();
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    if (it->second >= bytes && (best == free_.end() || it->second < best->second)) best = it;
  }
  if (best == free_.end()) {
    char* const slab = static_cast<char*>(MapHugePages(kSlab, kSlab));
    if (slab == nullptr) return nullptr;
    best = free_.emplace(slab, kSlab).first;
  }
  const auto [data, size] = *best;
  free_.erase(best);
  if (size > bytes) free_.emplace(data + bytes, size - bytes);
  return data;
}

void Slabs::Return(void* data, size_t bytes) {
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  const auto range = free_.emplace(static_cast<char*>(data), bytes).first;
  const auto next = std::next(range);
  if (next != free_.end() && range->first + range->second == next->first &&
      !BeginsSlab(next->first)) {
    range->second += next->second;
    free_.erase(next);
  }
  auto whole = range;
  if (range != free_.begin() && !BeginsSlab(range->first)) {
    const auto before = std::prev(range);
    if (before->first + before->second == range->first) {
      before->second += range->second;
      free_.erase(range);
      whole = before;
    }
  }
  if (whole->second < kSlab) return;
  munmap(whole->first, kSlab);
  free_.erase(whole);
}

size_t Slabs::free_bytes() const {
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  size_t bytes = 0;
  for (const auto& [data, size] : free_) bytes += size;
  return bytes;
}

}  // namespace bd
