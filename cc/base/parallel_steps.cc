// The protocol. `finished` counts the chunks done in all steps, so the step that is under way
// is finished / num_chunks. A region counts the chunks claimed of it in all steps, so claim
// number step * size + i is its i-th chunk of that step. A claim is a compare-and-swap from a
// value below (step + 1) * size: since counts only grow, it succeeds only while `step` is under
// way, however long ago the thread looked. A chunk that is claimed is run by a thread that is
// here; no thread ever waits for one that has claimed nothing.
#include "cc/base/parallel_steps.h"

#include <sched.h>
#include <xmmintrin.h>

#include <algorithm>
#include <atomic>

namespace bd {
namespace {

// More threads than this share regions: the list below is on the stack.
constexpr int64_t kMaxRegions = 64;

// The last chunk of a region is left to its owner for so many pauses (about 2 us), and two or
// more are taken at once: what a thread takes from others is not in its caches.
constexpr int kPausesBeforeLastChunk = 100;
constexpr int kPausesBeforeYield = 400;

// Two lines, which the prefetcher moves in pairs.
struct alignas(128) Region {
  std::atomic<int64_t> claimed{0};
  int64_t begin = 0, size = 0;
};

class Steps {
 public:
  Steps(int64_t num_steps, int64_t num_chunks, int64_t num_regions, StepBody body)
      : num_steps_(num_steps), num_chunks_(num_chunks), num_regions_(num_regions), body_(body) {
    for (int64_t r = 0; r < num_regions; ++r) {
      regions_[r].begin = num_chunks * r / num_regions;
      regions_[r].size = num_chunks * (r + 1) / num_regions - regions_[r].begin;
    }
  }

  void Work(int thread) {
    for (int64_t step;
         (step = finished_.load(std::memory_order_acquire) / num_chunks_) < num_steps_;) {
      Region& own = regions_[thread % num_regions_];
      int64_t done = 0;
      while (RunOne(own, step, thread)) ++done;
      if (done > 0) finished_.fetch_add(done, std::memory_order_acq_rel);
      WaitFor(step, thread);
    }
  }

 private:
  int64_t Left(const Region& region, int64_t step) const {
    return (step + 1) * region.size - region.claimed.load(std::memory_order_relaxed);
  }

  bool RunOne(Region& region, int64_t step, int thread) {
    int64_t seen = region.claimed.load(std::memory_order_relaxed);
    do {
      if (seen >= (step + 1) * region.size) return false;
    } while (!region.claimed.compare_exchange_weak(seen, seen + 1, std::memory_order_relaxed));
    const int64_t i = seen - step * region.size;
    body_(step, region.begin + (step % 2 == 0 ? i : region.size - 1 - i), thread);
    return true;
  }

  void WaitFor(int64_t step, int thread) {
    const int64_t all = (step + 1) * num_chunks_;
    for (int pauses = 0; finished_.load(std::memory_order_acquire) < all;) {
      if (Help(step, thread, pauses < kPausesBeforeLastChunk ? 2 : 1)) continue;
      ++pauses;
      if (pauses < kPausesBeforeYield) {
        _mm_pause();
      } else {
        sched_yield();
      }
    }
  }

  // Runs a chunk of a region of which at least `least` are left.
  bool Help(int64_t step, int thread, int64_t least) {
    for (int64_t i = 1; i < num_regions_; ++i) {
      Region& region = regions_[(thread + i) % num_regions_];
      if (Left(region, step) < least || !RunOne(region, step, thread)) continue;
      finished_.fetch_add(1, std::memory_order_acq_rel);
      return true;
    }
    return false;
  }

  const int64_t num_steps_, num_chunks_, num_regions_;
  const StepBody body_;
  Region regions_[kMaxRegions];
  alignas(128) std::atomic<int64_t> finished_{0};
};

}  // namespace

void ParallelSteps(ThreadPool& pool, int64_t num_steps, int64_t num_chunks, StepBody body) {
  if (num_steps <= 0 || num_chunks <= 0) return;
  const int64_t num_regions =
      std::min({static_cast<int64_t>(pool.num_threads()), num_chunks, kMaxRegions});
  Steps steps(num_steps, num_chunks, num_regions, body);
  // A task begun late finds less left, or nothing.
  pool.ParallelFor(num_regions, [&](int64_t, int thread) { steps.Work(thread); });
}

}  // namespace bd
