// The protocol. A region counts the chunks claimed of it in all steps, and those finished, so a
// step is over when all regions have finished (step + 1) * size. Claim number step * size + i is
// a region's i-th chunk of that step. A claim is a compare-and-swap from a value below
// (step + 1) * size: since counts only grow, it succeeds only while `step` is under way, however
// long ago the thread looked. A chunk that is claimed is run by a thread that is here; no thread
// ever waits for one that has claimed nothing.
//
// Both counts have lines of their own, and whoever waits reads the claims of others seldom: the
// owner's next claim would have to fetch the line back. So a step costs one transfer of a line,
// that of the last finished count to whoever waits for it.
#include "cc/base/threads/parallel_steps.h"

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
constexpr int kPausesBetweenHelps = 8;

// Two lines for each count, which the prefetcher moves in pairs.
struct alignas(128) Region {
  std::atomic<int64_t> claimed{0};
  int64_t begin = 0, size = 0;
  alignas(128) std::atomic<int64_t> finished{0};
};

class Steps {
 public:
  Steps(int64_t num_steps, int64_t num_chunks, int64_t num_regions, StepBody body)
      : num_steps_(num_steps), num_regions_(num_regions), body_(body) {
    for (int64_t r = 0; r < num_regions; ++r) {
      regions_[r].begin = num_chunks * r / num_regions;
      regions_[r].size = num_chunks * (r + 1) / num_regions - regions_[r].begin;
    }
  }

  void Work(int thread) {
    const int64_t home = thread % num_regions_;
    Region& own = regions_[home];
    for (int64_t step = UnderWay(); step < num_steps_; ++step) {
      int64_t done = 0;
      while (RunOne(own, step, thread)) ++done;
      if (done > 0) own.finished.fetch_add(done, std::memory_order_acq_rel);
      WaitFor(step, home, thread);
    }
  }

 private:
  // The first step that not all regions have finished.
  int64_t UnderWay() const {
    int64_t step = num_steps_;
    for (int64_t r = 0; r < num_regions_; ++r) {
      const Region& region = regions_[r];
      step = std::min(step, region.finished.load(std::memory_order_acquire) / region.size);
    }
    return step;
  }

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

  void WaitFor(int64_t step, int64_t home, int thread) {
    int pauses = 0;
    for (int64_t i = 1; i <= num_regions_; ++i) {
      Region& region = regions_[(home + i) % num_regions_];
      while (region.finished.load(std::memory_order_acquire) < (step + 1) * region.size) {
        if (pauses < kPausesBeforeYield) {
          _mm_pause();
        } else {
          sched_yield();
        }
        if (++pauses % kPausesBetweenHelps != 0) continue;
        while (Help(step, home, thread, pauses < kPausesBeforeLastChunk ? 2 : 1)) continue;
      }
    }
  }

  // Runs a chunk of a region of which at least `least` are left.
  bool Help(int64_t step, int64_t home, int thread, int64_t least) {
    for (int64_t i = 1; i < num_regions_; ++i) {
      Region& region = regions_[(home + i) % num_regions_];
      if (Left(region, step) < least || !RunOne(region, step, thread)) continue;
      region.finished.fetch_add(1, std::memory_order_acq_rel);
      return true;
    }
    return false;
  }

  const int64_t num_steps_, num_regions_;
  const StepBody body_;
  Region regions_[kMaxRegions];
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
