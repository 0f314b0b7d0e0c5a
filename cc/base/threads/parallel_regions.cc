#include "cc/base/threads/parallel_regions.h"

#include <algorithm>
#include <atomic>

namespace bd {
namespace {

// More threads than this share regions: the list below is on the stack.
constexpr int64_t kMaxRegions = 64;

// A region has two cache lines of its own, since the prefetcher moves lines in pairs. While
// nobody helps, a thread then counts its chunks without traffic between cores.
struct alignas(128) Region {
  std::atomic<int64_t> next;
  int64_t end;
};

}  // namespace

void ParallelRegions(ThreadPool& pool, int64_t num_chunks, ParallelBody body) {
  const int64_t num_regions =
      std::min({static_cast<int64_t>(pool.num_threads()), num_chunks, kMaxRegions});
  if (num_regions <= 1) {
    for (int64_t chunk = 0; chunk < num_chunks; ++chunk) body(chunk, 0);
    return;
  }
  Region regions[kMaxRegions];
  for (int64_t r = 0; r < num_regions; ++r) {
    regions[r].next.store(num_chunks * r / num_regions, std::memory_order_relaxed);
    regions[r].end = num_chunks * (r + 1) / num_regions;
  }
  // The first thread may do everything; later threads then find nothing left.
  pool.ParallelFor(num_regions, [&](int64_t, int thread) {
    for (int64_t i = 0; i < num_regions; ++i) {
      Region& region = regions[(thread + i) % num_regions];
      while (region.next.load(std::memory_order_relaxed) < region.end) {
        const int64_t chunk = region.next.fetch_add(1, std::memory_order_relaxed);
        if (chunk < region.end) body(chunk, thread);
      }
    }
  });
}

}  // namespace bd
