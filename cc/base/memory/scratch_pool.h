// Scratch memory that an owner keeps between executions: each takes a buffer for
// itself and gives it back, so any number of them may run at once.
//
//   ScratchPool pool;                          // with the kernel
//   const ScratchPool::Lease lease = pool.Take(plan.scratch.bytes());
//   const Scratch scratch(lease.data());       // in the run
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "cc/base/fork_safe_mutex.h"
#include "cc/base/memory/aligned_buffer.h"

namespace bd {

// Buffers grow with what is asked for and never shrink: a request that no idle
// buffer can serve replaces one of them. So there are never more buffers than
// executions that ran at once, whatever the order of sizes.
class ScratchPool {
 public:
  // Idle buffers beyond this are freed: a burst of callers does not keep its
  // memory for good.
  static constexpr size_t kMostIdle = 4;

  // One execution's buffer; goes back when destroyed, before its pool is.
  class Lease {
   public:
    Lease() = default;
    Lease(Lease&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), buffer_(std::move(other.buffer_)) {}
    Lease& operator=(Lease&& other) noexcept {
      std::swap(pool_, other.pool_);
      std::swap(buffer_, other.buffer_);
      return *this;
    }
    ~Lease() {
      if (pool_ != nullptr) pool_->Return(std::move(buffer_));
    }

    // Null for no bytes, and where memory is short.
    void* data() const { return buffer_.data(); }

   private:
    friend class ScratchPool;
    Lease(ScratchPool* pool, AlignedBuffer buffer) : pool_(pool), buffer_(std::move(buffer)) {}

    ScratchPool* pool_ = nullptr;
    AlignedBuffer buffer_;
  };

  // At least `bytes`, on a cache line. The smallest idle buffer that will do, the
  // one used last among equals.
  Lease Take(size_t bytes);

  size_t idle_buffers() const;
  size_t idle_bytes() const;

 private:
  // An idle buffer: one of at least `bytes`, or one to be replaced, or none.
  AlignedBuffer TakeIdle(size_t bytes);
  void Return(AlignedBuffer buffer);

  mutable ForkSafeMutex mutex_;
  std::vector<AlignedBuffer> idle_;  // used last at the end
};

}  // namespace bd
