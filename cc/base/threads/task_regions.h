// Tasks cut into one region a thread, the same in every job of as many tasks: a thread finds in its
// caches what it made in the job before. It takes its own tasks in order and then those at the end
// of others' regions, so that a thread that is late or descheduled delays nobody.
#pragma once

#include <atomic>
#include <cstdint>

namespace bd {

// A region has two cache lines of its own, since the prefetcher moves lines in pairs. While nobody
// helps, a thread then counts its tasks without traffic between cores.
struct alignas(128) TaskRegion {
  std::atomic<uint64_t> left{0};  // behind `first`: begin in the low half, end in the high one
  int64_t first = 0;

  bool Take(bool own, int64_t* task) {
    uint64_t seen = left.load(std::memory_order_relaxed);
    for (;;) {
      const uint64_t begin = seen & UINT32_MAX, end = seen >> 32;
      if (begin >= end) return false;
      const uint64_t rest = own ? seen + 1 : seen - (uint64_t{1} << 32);
      if (left.compare_exchange_weak(seen, rest, std::memory_order_relaxed)) {
        *task = first + static_cast<int64_t>(own ? begin : end - 1);
        return true;
      }
    }
  }
};

// Those of one job in memory of its owner.
class TaskRegions {
 public:
  // The most tasks of a job.
  static constexpr int64_t kMostTasks = UINT32_MAX;

  TaskRegions() = default;
  // Threads beyond the number of regions share them.
  TaskRegions(TaskRegion* regions, int64_t count, int64_t tasks)
      : regions_(regions), count_(count) {
    for (int64_t r = 0; r < count; ++r) {
      // Where tasks are fewer, the first thread has one: it is the caller, who is there.
      const int64_t begin = (tasks * r + count - 1) / count;
      const int64_t end = (tasks * (r + 1) + count - 1) / count;
      regions[r].first = begin;
      regions[r].left.store(static_cast<uint64_t>(end - begin) << 32, std::memory_order_relaxed);
    }
  }

  // A task that nobody has taken; false when there is none.
  bool Take(int thread, int64_t* task) const {
    for (int64_t i = 0; i < count_; ++i) {
      if (regions_[(thread + i) % count_].Take(i == 0, task)) return true;
    }
    return false;
  }

 private:
  TaskRegion* regions_ = nullptr;
  int64_t count_ = 0;
};

}  // namespace bd
