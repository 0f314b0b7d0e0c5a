#include "cc/base/memory/scratch_pool.h"

namespace bd {

AlignedBuffer ScratchPool::TakeIdle(size_t bytes) {
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  if (idle_.empty()) return AlignedBuffer();
  auto best = idle_.begin();
  for (auto it = best; it != idle_.end(); ++it) {
    // The smallest of those that fit; until one is found, the last one looked at.
    if (best->size() < bytes || (it->size() >= bytes && it->size() <= best->size())) best = it;
  }
  AlignedBuffer taken = std::move(*best);
  idle_.erase(best);
  return taken;
}

ScratchPool::Lease ScratchPool::Take(size_t bytes) {
  if (bytes == 0) return Lease();
  AlignedBuffer buffer = TakeIdle(bytes);
  if (buffer.size() < bytes) {
    buffer = AlignedBuffer();  // gives its memory back before more is taken
    buffer = AlignedBuffer(bytes);
    if (buffer.data() == nullptr) return Lease();
  }
  return Lease(this, std::move(buffer));
}

void ScratchPool::Return(AlignedBuffer buffer) {
  AlignedBuffer dropped;  // freed after the lock
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  idle_.push_back(std::move(buffer));
  if (idle_.size() <= kMostIdle) return;
  dropped = std::move(idle_.front());
  idle_.erase(idle_.begin());
}

size_t ScratchPool::idle_buffers() const {
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  return idle_.size();
}

size_t ScratchPool::idle_bytes() const {
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  size_t bytes = 0;
  for (const AlignedBuffer& buffer : idle_) bytes += buffer.size();
  return bytes;
}

}  // namespace bd
