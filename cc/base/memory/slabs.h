// Memory for buffers that are smaller than a huge page, many of them on one page.
#pragma once

#include <cstddef>
#include <map>

#include "cc/base/fork_safe_mutex.h"
#include "cc/base/memory/huge_pages.h"

namespace bd {

// Slabs are huge pages of our own; a slab that holds no buffer goes back to the system. The C
// library's heap would not do: when it gives free memory back (`malloc_trim`), the huge pages
// around that memory are split, and with its weights on 4 KB pages MobileNetV2 takes 2 % longer.
// Safe to use from many threads.
class Slabs {
 public:
  static constexpr size_t kSlab = kHugePage;

  static Slabs& Get();

  // Memory of `bytes`, a multiple of 64 and at most kSlab, on a cache line; null where there is
  // none. It lies in the smallest free range that will do.
  void* Take(size_t bytes);

  // Takes back what Take gave for as many bytes.
  void Return(void* data, size_t bytes);

  size_t free_bytes() const;  // of all slabs, for tests

 private:
  mutable ForkSafeMutex mutex_;
  std::map<char*, size_t> free_;  // ranges and their sizes; none reaches into a second slab
};

}  // namespace bd
