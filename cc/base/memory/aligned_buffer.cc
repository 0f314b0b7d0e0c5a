#include "cc/base/memory/aligned_buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace bd {
namespace {

constexpr size_t kSmallPage = size_t{4} << 10;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kLarge = size_t{1} << 20;

size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

// Bytes of the huge pages that `bytes` fill; the last one counts if it is at least half full.
// So no buffer takes more than 1 MB beyond its size.
size_t HugePart(size_t bytes) { return (bytes + kLarge) / kHugePage * kHugePage; }

// Maps `bytes` of new pages that begin on a huge page; null if there are none.
void* MapOnHugePages(size_t bytes) {
  const size_t reserved = bytes + kHugePage;
  if (reserved < bytes) return nullptr;
  void* map = mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) return nullptr;
  char* first = static_cast<char*>(map);
  char* aligned = reinterpret_cast<char*>(RoundUp(reinterpret_cast<uintptr_t>(first), kHugePage));
  const size_t before = aligned - first;
  if (before > 0) munmap(first, before);
  munmap(aligned + bytes, kHugePage - before);
  return aligned;
}

}  // namespace

AlignedBuffer::AlignedBuffer(size_t bytes) {
  if (bytes == 0 || bytes > SIZE_MAX / 2) return;
  if (bytes < kLarge) {
    data_ = aligned_alloc(kAlignment, RoundUp(bytes, kAlignment));
  } else {
    mapped_ = std::max(RoundUp(bytes, kSmallPage), HugePart(bytes));
    data_ = MapOnHugePages(mapped_);
    // This is advice: a kernel without huge pages refuses it, and nothing else changes.
    if (data_ != nullptr) madvise(data_, HugePart(bytes), MADV_HUGEPAGE);
  }
  if (data_ != nullptr) size_ = bytes;
}

AlignedBuffer::~AlignedBuffer() {
  if (data_ == nullptr) return;
  if (mapped_ > 0) {
    munmap(data_, mapped_);
  } else {
    free(data_);
  }
}

}  // namespace bd
