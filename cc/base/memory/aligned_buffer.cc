#include "cc/base/memory/aligned_buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

#include "cc/base/memory/huge_pages.h"
#include "cc/base/memory/slabs.h"

namespace bd {
namespace {

constexpr size_t kSmallPage = size_t{4} << 10;
constexpr size_t kLarge = size_t{1} << 20;

size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

// Bytes of the huge pages that `bytes` fill; the last one counts if it is at least half full.
// So no buffer takes more than 1 MB beyond its size.
size_t HugePart(size_t bytes) { return (bytes + kLarge) / kHugePage * kHugePage; }

// AddressSanitizer watches buffers of the heap, and it cannot see the ends of those in slabs.
#ifdef __SANITIZE_ADDRESS__
void* TakeSmall(size_t bytes) { return aligned_alloc(AlignedBuffer::kAlignment, bytes); }
void ReturnSmall(void* data, size_t) { free(data); }
#else
void* TakeSmall(size_t bytes) { return Slabs::Get().Take(bytes); }
void ReturnSmall(void* data, size_t bytes) { Slabs::Get().Return(data, bytes); }
#endif

}  // namespace

AlignedBuffer::AlignedBuffer(size_t bytes) {
  if (bytes == 0 || bytes > SIZE_MAX / 2) return;
  if (bytes < kLarge) {
    data_ = TakeSmall(RoundUp(bytes, kAlignment));
  } else {
    mapped_ = std::max(RoundUp(bytes, kSmallPage), HugePart(bytes));
    data_ = MapHugePages(mapped_, HugePart(bytes));
  }
  if (data_ != nullptr) size_ = bytes;
}

AlignedBuffer::~AlignedBuffer() {
  if (data_ == nullptr) return;
  if (mapped_ > 0) {
    munmap(data_, mapped_);
  } else {
    ReturnSmall(data_, RoundUp(size_, kAlignment));
  }
}

}  // namespace bd
