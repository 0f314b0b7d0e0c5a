// The protocol. A region counts the chunks claimed of it in all steps, and a group of regions those
// that are finished, so a step is over when all groups have finished (step + 1) * size. Claim
// number step * size + i is a region's i-th chunk of that step. A claim is a compare-and-swap from
// a value below (step + 1) * size: since counts only grow, it succeeds only while `step` is under
// way, however long ago the thread looked. A chunk that is claimed is run by a thread that is here;
// no thread ever waits for one that has claimed nothing.
//
// A region is a thread's own, and a group that of eight neighbours (task_regions.h): who finishes
// the last chunks of a group counts it, and who counts the last group says that the step is over,
// in a word that is written once a step. Where there is one group, its count is that word. Whoever
// waits reads the claims of others seldom: the owner's next claim would have to fetch the line
// back. Where all are claimed, it may sleep (waiting.h).
#include "cc/base/threads/parallel_steps.h"

#include <algorithm>
#include <atomic>

#include "cc/base/threads/task_regions.h"
#include "cc/base/threads/waiting.h"

namespace bd {
namespace {

// More threads than this share regions: the list below is on the stack.
constexpr int64_t kMaxRegions = 64;

// The last chunk of a region is left to its owner for so many pauses (about 2 us), and two or
// more are taken at once: what a thread takes from others is not in its caches.
constexpr int kPausesBeforeLastChunk = 100;
constexpr int kPausesBetweenHelps = 8;

// Two lines for each count, which the prefetcher moves in pairs.
struct alignas(128) Region {
  std::atomic<int64_t> claimed{0};
  int64_t begin = 0, size = 0;
};
struct alignas(128) Group {
  std::atomic<int64_t> finished{0};
  int64_t chunks = 0;
};

class Steps {
 public:
  Steps(int64_t num_steps, int64_t num_chunks, int64_t num_regions, StepBody body)
      : num_steps_(num_steps),
        num_regions_(num_regions),
        size_(NeighboursOf(num_regions)),
        num_groups_((num_regions + size_ - 1) / size_),
        over_(num_groups_ == 1 ? &groups_[0].finished : &steps_),
        over_in_a_step_(num_groups_ == 1 ? num_chunks : 1),
        body_(body) {
    for (int64_t r = 0; r < num_regions; ++r) {
      regions_[r].begin = num_chunks * r / num_regions;
      regions_[r].size = num_chunks * (r + 1) / num_regions - regions_[r].begin;
      groups_[r / size_].chunks += regions_[r].size;
    }
  }

  void Work(int thread) {
    const int64_t home = thread % num_regions_;
    int64_t step = over_->load(std::memory_order_acquire) / over_in_a_step_;
    for (; step < num_steps_; ++step) {
      int64_t done = 0;
      while (RunOne(home, step, thread)) ++done;
      if (done > 0) Finish(home, done, step);
      WaitFor(step, home, thread);
    }
  }

 private:
  bool IsOver(int64_t step) const {
    return over_->load(std::memory_order_seq_cst) >= (step + 1) * over_in_a_step_;
  }

  bool RunOne(int64_t r, int64_t step, int thread) {
    Region& region = regions_[r];
    int64_t seen = region.claimed.load(std::memory_order_relaxed);
    do {
      if (seen >= (step + 1) * region.size) return false;
    } while (!region.claimed.compare_exchange_weak(seen, seen + 1, std::memory_order_relaxed));
    const int64_t i = seen - step * region.size;
    body_(step, region.begin + (step % 2 == 0 ? i : region.size - 1 - i), thread);
    return true;
  }

  // So many chunks of a region.
  void Finish(int64_t r, int64_t chunks, int64_t step) {
    Group& group = groups_[r / size_];
    const auto is_last = [step](std::atomic<int64_t>* count, int64_t add, int64_t in_a_step) {
      return count->fetch_add(add, std::memory_order_seq_cst) + add == (step + 1) * in_a_step;
    };
    if (!is_last(&group.finished, chunks, group.chunks)) return;
    if (num_groups_ > 1) {
      if (!is_last(&ended_, 1, num_groups_)) return;
      steps_.store(step + 1, std::memory_order_seq_cst);
    }
    sleepers_.Wake();
  }

  void WaitFor(int64_t step, int64_t home, int thread) {
    int64_t pauses = 0;
    const auto is_over = [&] {
      if (IsOver(step)) return true;
      if (++pauses % kPausesBetweenHelps == 0) HelpOthers(pauses, step, home, thread);
      return false;
    };
    if (WaitAwake(is_over)) return;
    for (int64_t group = 0; group < num_groups_; ++group) {
      while (Help(group, step, home, thread, 1)) continue;
    }
    sleepers_.SleepUntil([&] { return IsOver(step); });
  }

  // Neighbours first, and then one other group at a time.
  void HelpOthers(int64_t pauses, int64_t step, int64_t home, int thread) {
    const int64_t own = home / size_, other = (own + pauses / kPausesBetweenHelps) % num_groups_;
    const int64_t least = pauses < kPausesBeforeLastChunk ? 2 : 1;
    while (Help(own, step, home, thread, least) ||
           (other != own && Help(other, step, home, thread, least))) {
      continue;
    }
  }

  // Runs a chunk of a region of the group of which at least `least` are left.
  bool Help(int64_t group, int64_t step, int64_t home, int thread, int64_t least) {
    const int64_t first = group * size_, count = std::min(size_, num_regions_ - first);
    for (int64_t i = 1; i <= count; ++i) {
      const int64_t r = first + (home + i) % count;
      const int64_t claimed = regions_[r].claimed.load(std::memory_order_relaxed);
      if ((step + 1) * regions_[r].size - claimed < least || !RunOne(r, step, thread)) continue;
      Finish(r, 1, step);
      return true;
    }
    return false;
  }

  const int64_t num_steps_, num_regions_, size_, num_groups_;
  alignas(128) std::atomic<int64_t> ended_{0};  // groups, in all steps together
  alignas(128) std::atomic<int64_t> steps_{0};  // that are over
  // Says which steps are over, by so much a step.
  alignas(128) std::atomic<int64_t>* const over_;
  const int64_t over_in_a_step_;
  const StepBody body_;
  Sleepers sleepers_;
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
