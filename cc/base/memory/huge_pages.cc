#include "cc/base/memory/huge_pages.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace bd {
namespace {

constexpr size_t kSmallTensor = size_t{64} << 10;
constexpr int kCollapse = 25;  // MADV_COLLAPSE, which Debian 12's headers lack

bool Permitted() {
  const int file = open("/sys/kernel/mm/transparent_hugepage/enabled", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char text[64] = {};
  const ssize_t length = read(file, text, sizeof(text) - 1);
  close(file);
  return length > 0 && strstr(text, "[never]") == nullptr;
}

// The ranges asked for so far, up to 16 GB of them, in an open hash table that never
// forgets. A range that finds no place in it stays on small pages.
class AskedRanges {
 public:
  // True for the first caller that names a range.
  bool Add(uintptr_t range) {
    constexpr int kProbes = 16;
    for (int probe = 0; probe < kProbes; ++probe) {
      std::atomic<uintptr_t>& slot = slots_[(range * 0x9e3779b1 + probe) % kSlots];
      uintptr_t seen = slot.load(std::memory_order_relaxed);
      if (seen == 0 && slot.compare_exchange_strong(seen, range, std::memory_order_relaxed)) {
        return true;
      }
      if (seen == range) return false;
    }
    return false;
  }

 private:
  static constexpr size_t kSlots = 8192;
  std::atomic<uintptr_t> slots_[kSlots];
};

AskedRanges asked;  // zero at the start of the process

}  // namespace

void PreferHugePages(const void* data, size_t bytes) {
  if (bytes < kSmallTensor) return;
  static const bool permitted = Permitted();
  if (!permitted) return;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(data);
  for (uintptr_t range = begin / kHugePage; range * kHugePage < begin + bytes; ++range) {
    if (!asked.Add(range)) continue;
    void* address = reinterpret_cast<void*>(range * kHugePage);
    madvise(address, kHugePage, MADV_HUGEPAGE);
    madvise(address, kHugePage, kCollapse);
  }
}

void* MapHugePages(size_t bytes, size_t huge) {
  const size_t reserved = bytes + kHugePage;
  if (reserved < bytes) return nullptr;
  void* map = mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) return nullptr;
  char* const first = static_cast<char*>(map);
  const size_t before = -reinterpret_cast<uintptr_t>(first) % kHugePage;
  char* const aligned = first + before;
  if (before > 0) munmap(first, before);
  munmap(aligned + bytes, kHugePage - before);
  // This is advice: a kernel without huge pages refuses it, and nothing else changes.
  madvise(aligned, huge, MADV_HUGEPAGE);
  return aligned;
}

}  // namespace bd
