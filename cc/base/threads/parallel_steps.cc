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
//
// Of many threads each waits for the regions of its neighbours (task_regions.h), and for one count
// of the steps that groups of them have ended. That is no more than one step behind: as long as
// some region lacks chunks of a step, no group has ended the next one, and so the sum over all
// groups is less than if each had ended the step.
#include "cc/base/threads/parallel_steps.h"

#include <sched.h>
#include <xmmintrin.h>

#include <algorithm>
#include <atomic>

#include "cc/base/threads/task_regions.h"

namespace bd {
namespace {

// More threads than this share regions: the list below is on the stack.
constexpr int64_t kMaxRegions = 64;

// The last chunk of a region is left to its owner for so many pauses (about 2 us), and two or
// more are taken at once: what a thread takes from others is not in its caches.
constexpr int kPausesBeforeLastChunk = 100;
constexpr int kAwakePauses = 400;
constexpr int kPausesBetweenHelps = 8;

// Two lines for each count, which the prefetcher moves in pairs.
struct alignas(128) Region {
  std::atomic<int64_t> claimed{0};
  int64_t begin = 0, size = 0;
  alignas(128) std::atomic<int64_t> finished{0};
};

// The steps that all regions of a group have finished.
struct alignas(128) Group {
  std::atomic<int64_t> ended{0};
};

class Steps {
 public:
  Steps(int64_t num_steps, int64_t num_chunks, int64_t num_regions, StepBody body)
      : num_steps_(num_steps),
        num_regions_(num_regions),
        size_(std::min(num_regions, NeighboursOf(num_regions))),
        num_groups_((num_regions + size_ - 1) / size_),
        body_(body) {
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

  int64_t EndOf(int64_t group) const { return std::min((group + 1) * size_, num_regions_); }

  bool HasFinished(const Region& region, int64_t step) const {
    return region.finished.load(std::memory_order_acquire) >= (step + 1) * region.size;
  }

  void WaitFor(int64_t step, int64_t home, int thread) {
    const int64_t group = home / size_, first = group * size_, count = EndOf(group) - first;
    int64_t pauses = 0;
    for (int64_t i = 1; i <= count; ++i) {
      const Region& region = regions_[first + (home - first + i) % count];
      while (!HasFinished(region, step)) Pause(&pauses, step, home, thread);
    }
    if (num_groups_ == 1) return;
    Say(group, step);
    while (ended_.load(std::memory_order_acquire) < (step + 1) * num_groups_) {
      Pause(&pauses, step, home, thread);
      // There may be nobody else of a group.
      if (pauses % kPausesBetweenHelps != 0) continue;
      const int64_t other = (group + pauses / kPausesBetweenHelps) % num_groups_;
      const auto finished = [&](const Region& region) { return HasFinished(region, step); };
      if (std::all_of(regions_ + other * size_, regions_ + EndOf(other), finished)) {
        Say(other, step);
      }
    }
  }

  // That all regions of a group have finished the step: once, whoever sees it.
  void Say(int64_t group, int64_t step) {
    std::atomic<int64_t>& ended = groups_[group].ended;
    int64_t seen = ended.load(std::memory_order_relaxed);
    while (seen <= step) {
      if (!ended.compare_exchange_weak(seen, step + 1, std::memory_order_acq_rel)) continue;
      ended_.fetch_add(step + 1 - seen, std::memory_order_acq_rel);
      return;
    }
  }

  // A moment of waiting, in which others are helped now and then: neighbours first, and then one
  // other group at a time.
  void Pause(int64_t* pauses, int64_t step, int64_t home, int thread) {
    if (*pauses < kAwakePauses) {
      _mm_pause();
    } else {
      sched_yield();
    }
    if (++*pauses % kPausesBetweenHelps != 0) return;
    const int64_t other = (home / size_ + *pauses / kPausesBetweenHelps) % num_groups_;
    const int64_t least = *pauses < kPausesBeforeLastChunk ? 2 : 1;
    while (Help(home / size_, step, home, thread, least) ||
           (num_groups_ > 1 && Help(other, step, home, thread, least))) {
      continue;
    }
  }

  // Runs a chunk of a region of the group of which at least `least` are left.
  bool Help(int64_t group, int64_t step, int64_t home, int thread, int64_t least) {
    const int64_t first = group * size_, count = EndOf(group) - first;
    for (int64_t i = 1; i <= count; ++i) {
      Region& region = regions_[first + (home + i) % count];
      if (Left(region, step) < least || !RunOne(region, step, thread)) continue;
      region.finished.fetch_add(1, std::memory_order_acq_rel);
      return true;
    }
    return false;
  }

  const int64_t num_steps_, num_regions_, size_, num_groups_;
  const StepBody body_;
  alignas(128) std::atomic<int64_t> ended_{0};  // steps of all groups together
  Group groups_[kMaxRegions / kNeighbours];
  Region regions_[kMaxRegions];
};

}  // namespace

void ParallelSteps(ThreadPool& pool, int64_t num_steps, int64_t num_chunks, StepBody body) {
  if (num_steps <= 0 || num_chunks <= 0) return;
  const int64_t num_regions =
      std::min({static_cast<int64_t>(pool.team_threads()), num_chunks, kMaxRegions});
  Steps steps(num_steps, num_chunks, num_regions, body);
  // A task begun late finds less left, or nothing.
  pool.ParallelFor(num_regions, [&](int64_t, int thread) { steps.Work(thread); });
}

}  // namespace bd
