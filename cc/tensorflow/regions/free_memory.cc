#include "cc/tensorflow/regions/free_memory.h"

#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "tensorflow/core/framework/allocator.h"

namespace bd {
namespace {

constexpr size_t kPage = 4096;
constexpr int64_t kLargest = int64_t{64} << 20;
// Smaller ones are many, and hold little.
constexpr int64_t kSmallest = int64_t{1} << 20;
// A block that no free one can give comes from memory that the allocator takes anew, twice as much
// each time, until it has all that it may have, and then every caller waits ten seconds for it. So
// what is asked for together, twice this part of the limit at most, stays far below.
constexpr int64_t kPartOfLimit = 16;
// Of one size, blocks without pages before the next size is tried.
constexpr size_t kMostEmpty = 4;

// Whether any page of the block was resident; none is now.
bool DropPages(void* block, size_t bytes) {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(block);
  const uintptr_t first = (begin + kPage - 1) / kPage * kPage;
  const uintptr_t end = (begin + bytes) / kPage * kPage;
  std::vector<unsigned char> pages((end - first) / kPage);
  void* const data = reinterpret_cast<void*>(first);
  if (mincore(data, end - first, pages.data()) != 0) return false;
  const bool resident = std::any_of(pages.begin(), pages.end(), [](int page) { return page & 1; });
  return resident && madvise(data, end - first, MADV_DONTNEED) == 0;
}

void DropFreeBlocks(tensorflow::Allocator* allocator) {
  const auto stats = allocator->GetStats();  // None where freed memory is not kept.
  if (!stats) return;
  // At most so much of what the allocator has had is free. Where blocks have no pages, more of that
  // size may follow that have, but not beyond this.
  const int64_t limit = stats->bytes_limit.value_or(0), used = stats->bytes_in_use;
  if (used > limit / 2) return;
  int64_t left = std::min(stats->peak_bytes_in_use - used, limit / kPartOfLimit);
  std::vector<void*> held;
  for (int64_t bytes = kLargest; bytes >= kSmallest; bytes -= bytes / 4) {
    std::vector<void*> empty;
    while (empty.size() < kMostEmpty && static_cast<int64_t>(empty.size() + 1) * bytes <= left) {
      void* const block = allocator->AllocateRaw(tensorflow::Allocator::kAllocatorAlignment, bytes);
      if (block == nullptr) break;
      const bool dropped = DropPages(block, bytes);
      if (dropped) left -= bytes;
      (dropped ? held : empty).push_back(block);
    }
    for (void* block : empty) allocator->DeallocateRaw(block);
  }
  for (void* block : held) allocator->DeallocateRaw(block);
}

}  // namespace

void ReturnFreeMemory() {
  // One thread does it for all: several would ask for as many times the room.
  static std::atomic<bool> busy{false};
  if (busy.exchange(true, std::memory_order_acquire)) return;
  DropFreeBlocks(tensorflow::cpu_allocator());
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  busy.store(false, std::memory_order_release);
}

}  // namespace bd
