// Tasks cut into one region a thread, the same in every job of as many tasks: a thread finds in its
// caches what it made in the job before. It takes its own tasks in order and then those at the end
// of others' regions, so that a thread that is late or descheduled delays nobody.
//
// A region is filled by whoever comes to it first, since its word tells the job that it is of: the
// caller, who would have to fetch the line of each thread, writes none. Regions of neighbours are a
// group, a word of which says which of them have tasks left; another says it of groups. So who
// looks for tasks of others reads these, and not a line a thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace bd {

// Threads that share what all of them write or read: so many, or more of them where there would be
// more than 64 groups, which are the bits of a word.
constexpr int64_t kNeighbours = 8;
constexpr int64_t NeighboursOf(int64_t threads) {
  return std::max(kNeighbours, (threads + 63) / 64);
}

// Each word has two cache lines of its own, since the prefetcher moves lines in pairs. While nobody
// helps, a thread then counts its tasks without traffic between cores.
struct alignas(128) TaskRegion {
  // From the lowest bits: begin and end of the tasks that are left, and job.
  std::atomic<uint64_t> left{0};
};
struct alignas(128) TaskGroup {
  // A bit for each region that has tasks left, and above them the job.
  std::atomic<uint64_t> busy{0};
};

// Those of one job, in memory of its owner that lasts from job to job.
class TaskRegions {
 public:
  static constexpr int kTaskBits = 28;
  // The most tasks of a job, and the last number of one. The first is 1, and after the last one
  // the owner clears all regions and groups.
  static constexpr int64_t kMostTasks = (int64_t{1} << kTaskBits) - 1;
  static constexpr uint32_t kLastJob = (1u << (64 - 2 * kTaskBits)) - 1;

  TaskRegions() = default;
  // `groups` are those of `count` regions, and one more before them, of which the groups are.
  TaskRegions(TaskRegion* regions, TaskGroup* groups, uint32_t job, int64_t count, int64_t tasks)
      : regions_(regions),
        groups_(groups),
        tasks_(static_cast<uint32_t>(tasks)),
        job_(static_cast<uint16_t>(job)),
        count_(static_cast<uint16_t>(count)) {
    if (groups_of_job() > 1) groups[0].busy.store(Ones(groups_of_job()), std::memory_order_relaxed);
  }

  // A task that nobody has taken; false when there is none. Threads beyond the number of regions
  // share them.
  bool Take(int thread, int64_t* task) const {
    const int64_t home = thread % count_, size = NeighboursOf(count_);
    if (TakeFrom(home, true, task)) return true;
    const int64_t groups = groups_of_job();
    uint64_t busy = groups == 1 ? 1 : groups_[0].busy.load(std::memory_order_relaxed);
    // From the next one on, so that thieves try different victims.
    for (int64_t group = home / size; busy != 0; group = (group + 1) % groups) {
      if ((busy >> group & 1) == 0) continue;
      busy &= ~(uint64_t{1} << group);
      const int64_t first = group * size, regions = RegionsOf(group);
      uint64_t left = BusyOf(groups_[1 + group].busy.load(std::memory_order_relaxed), regions);
      for (int64_t i = (home + 1) % size % regions; left != 0; i = (i + 1) % regions) {
        if ((left >> i & 1) == 0) continue;
        left &= ~(uint64_t{1} << i);
        if (TakeFrom(first + i, false, task)) return true;
      }
    }
    return false;
  }

 private:
  // Above a group's bits, of which there are 16 at most.
  static constexpr int kJobShift = 32;
  static uint64_t Ones(int64_t count) { return ~uint64_t{0} >> (64 - count); }

  int64_t groups_of_job() const {
    return (count_ + NeighboursOf(count_) - 1) / NeighboursOf(count_);
  }
  int64_t RegionsOf(int64_t group) const {
    const int64_t size = NeighboursOf(count_);
    return std::min(size, count_ - group * size);
  }
  uint64_t Begin(int64_t region) const {
    // Where tasks are fewer, the first thread has one: it is the caller, who is there.
    return (uint64_t{tasks_} * static_cast<uint64_t>(region) + count_ - 1) / count_;
  }
  // The bits of a group's word; all if it is of another job.
  uint64_t BusyOf(uint64_t word, int64_t regions) const {
    return word >> kJobShift == job_ ? word & Ones(kJobShift) : Ones(regions);
  }

  bool TakeFrom(int64_t region, bool own, int64_t* task) const {
    constexpr uint64_t kMask = static_cast<uint64_t>(kMostTasks);
    std::atomic<uint64_t>& left = regions_[region].left;
    uint64_t seen = left.load(std::memory_order_relaxed);
    for (;;) {
      const bool filled = seen >> (2 * kTaskBits) == job_;
      const uint64_t begin = filled ? seen & kMask : Begin(region);
      const uint64_t end = filled ? seen >> kTaskBits & kMask : Begin(region + 1);
      if (begin >= end) return false;
      *task = static_cast<int64_t>(own ? begin : end - 1);
      const uint64_t rest = uint64_t{job_} << (2 * kTaskBits) | (own ? end : end - 1) << kTaskBits |
                            (own ? begin + 1 : begin);
      if (!left.compare_exchange_weak(seen, rest, std::memory_order_relaxed)) continue;
      // Of two, who has none left looks at the other's word at once.
      if (begin + 1 == end && count_ > 2) SayThatItIsEmpty(region);
      return true;
    }
  }

  void SayThatItIsEmpty(int64_t region) const {
    const int64_t size = NeighboursOf(count_), group = region / size;
    std::atomic<uint64_t>& word = groups_[1 + group].busy;
    // A guess, since who reads the word first has its line come from another core twice.
    uint64_t seen = 0, left;
    do {
      left = BusyOf(seen, RegionsOf(group)) & ~(uint64_t{1} << region % size);
    } while (!word.compare_exchange_weak(seen, uint64_t{job_} << kJobShift | left,
                                         std::memory_order_relaxed));
    if (left == 0 && groups_of_job() > 1) {
      groups_[0].busy.fetch_and(~(uint64_t{1} << group), std::memory_order_relaxed);
    }
  }

  TaskRegion* regions_ = nullptr;
  TaskGroup* groups_ = nullptr;
  uint32_t tasks_ = 0;
  uint16_t job_ = 0, count_ = 0;
};

}  // namespace bd
