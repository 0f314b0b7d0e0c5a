// A thread publishes one word that holds the task and the range of units that are left. It takes
// units from the front and other threads take them from the end. Both replace the whole word, so
// no unit is taken twice, and the task in the word tells it from a later one with the same units. A
// payload is written while its thread has no units left, and the store of the word releases it.
//
// A caller keeps these words from call to call. Units are all taken when a call ends, so the next
// one finds every word empty and writes none but its own thread's.
#include "cc/base/threads/parallel_units.h"

#include <algorithm>
#include <atomic>
#include <memory>

#include "cc/base/threads/task_regions.h"

namespace bd {
namespace {

constexpr int kMaxPublishers = 64;  // further threads publish nothing
// Of so many other groups of threads a thief looks at the words.
constexpr int kOtherGroups = 1;
constexpr int kUnitBits = 20, kTaskBits = 64 - 2 * kUnitBits;
constexpr uint64_t kUnitMask = (uint64_t{1} << kUnitBits) - 1;

uint64_t Pack(int64_t task, int64_t begin, int64_t end) {
  return static_cast<uint64_t>(task) << (2 * kUnitBits) |
         static_cast<uint64_t>(begin) << kUnitBits | static_cast<uint64_t>(end);
}

int64_t TaskOf(uint64_t word) { return static_cast<int64_t>(word >> (2 * kUnitBits)); }
int64_t BeginOf(uint64_t word) { return static_cast<int64_t>(word >> kUnitBits & kUnitMask); }
int64_t EndOf(uint64_t word) { return static_cast<int64_t>(word & kUnitMask); }
int64_t LeftOf(uint64_t word) { return EndOf(word) - BeginOf(word); }

int64_t Share(int64_t left, double fraction, int64_t least) {
  return std::min(left, std::max(least, static_cast<int64_t>(left * fraction)));
}

// Two cache lines, since the prefetcher moves lines in pairs.
struct alignas(128) PublishedUnits {
  std::atomic<uint64_t> word{0};
  std::atomic<int> payload{0};
};

}  // namespace

struct UnitTaker::Shared {
  TaskRegions tasks;
  int threads = 0;             // none: one goes through more tasks than regions hold,
  int64_t next = 0, most = 0;  // from `next` to `most`
  uint32_t job = 0;
  bool in_use = false;  // by a call of the caller's, within which this one is
  TaskRegion regions[kMaxPublishers];
  TaskGroup groups[1 + kMaxPublishers / kNeighbours];
  PublishedUnits published[kMaxPublishers];
};

UnitTaker::UnitTaker(Shared* shared, int thread) : shared_(shared), thread_(thread) {}

bool UnitTaker::NextTask(int64_t* task) {
  if (shared_->threads == 0 ? (*task = shared_->next++) >= shared_->most
                            : !shared_->tasks.Take(thread_, task)) {
    return false;
  }
  own_ = {*task, 0, 0, 0};
  return true;
}

void UnitTaker::Publish(int64_t units, int payload) {
  own_.begin = 0;
  own_.end = units;
  own_.payload = payload;
  published_ = thread_ < shared_->threads && units <= static_cast<int64_t>(kUnitMask) &&
               own_.task < int64_t{1} << kTaskBits;
  if (!published_) return;
  PublishedUnits& own = shared_->published[thread_];
  own.payload.store(payload, std::memory_order_relaxed);
  own.word.store(Pack(own_.task, 0, units), std::memory_order_release);
}

bool UnitTaker::Next(double fraction, int64_t least, Units* units) {
  if (!published_) {
    const int64_t begin = own_.begin, left = own_.end - begin;
    own_.begin += Share(left, fraction, least);
    *units = {own_.task, begin, own_.begin, own_.payload};
    return left > 0;
  }
  std::atomic<uint64_t>& word = shared_->published[thread_].word;
  uint64_t seen = word.load(std::memory_order_relaxed);
  while (LeftOf(seen) > 0) {
    const int64_t begin = BeginOf(seen);
    const int64_t taken = Share(LeftOf(seen), fraction, least);
    const uint64_t rest = Pack(own_.task, begin + taken, EndOf(seen));
    if (word.compare_exchange_weak(seen, rest, std::memory_order_relaxed)) {
      *units = {own_.task, begin, begin + taken, own_.payload};
      return true;
    }
  }
  return false;
}

bool UnitTaker::Steal(double fraction, int64_t least, Units* units) {
  // Those who have the most are looked for among neighbours, and then in other groups, each thread
  // beginning with another one: all words would be a line a thread for each of the threads.
  const int size = static_cast<int>(NeighboursOf(shared_->threads));
  const int groups = (shared_->threads + size - 1) / size;
  for (int next = 0;;) {
    if (next >= std::min(groups, 1 + kOtherGroups)) return false;
    const int group = (thread_ / size + next * (1 + thread_ % size)) % groups;
    PublishedUnits* most = nullptr;
    uint64_t seen = 0;
    for (int t = group * size; t < std::min((group + 1) * size, shared_->threads); ++t) {
      const uint64_t word = shared_->published[t].word.load(std::memory_order_acquire);
      if (LeftOf(word) > LeftOf(seen)) {
        most = &shared_->published[t];
        seen = word;
      }
    }
    if (most == nullptr) {
      ++next;
      continue;
    }
    const int payload = most->payload.load(std::memory_order_relaxed);
    const int64_t end = EndOf(seen);
    const int64_t taken = Share(LeftOf(seen), fraction, least);
    const uint64_t rest = Pack(TaskOf(seen), BeginOf(seen), end - taken);
    if (most->word.compare_exchange_strong(seen, rest, std::memory_order_acq_rel)) {
      *units = {TaskOf(seen), end - taken, end, payload};
      return true;
    }
  }
}

void ParallelUnits(ThreadPool& pool, int64_t tasks, FunctionRef<void(UnitTaker&)> body) {
  if (tasks > TaskRegions::kMostTasks) {
    UnitTaker::Shared alone;
    alone.most = tasks;
    UnitTaker taker(&alone, 0);
    return body(taker);
  }
  thread_local std::unique_ptr<UnitTaker::Shared> kept;
  if (kept == nullptr) kept = std::make_unique<UnitTaker::Shared>();
  std::unique_ptr<UnitTaker::Shared> nested;
  if (kept->in_use) nested = std::make_unique<UnitTaker::Shared>();
  UnitTaker::Shared& shared = nested == nullptr ? *kept : *nested;
  shared.in_use = true;
  shared.threads = std::min(pool.team_threads(), kMaxPublishers);
  if (++shared.job > TaskRegions::kLastJob) {
    for (TaskRegion& region : shared.regions) region.left.store(0, std::memory_order_relaxed);
    for (TaskGroup& group : shared.groups) group.busy.store(0, std::memory_order_relaxed);
    shared.job = 1;
  }
  shared.tasks = TaskRegions(shared.regions, shared.groups, shared.job,
                             std::min<int64_t>(tasks, shared.threads), tasks);
  pool.ParallelFor(std::min<int64_t>(tasks, pool.team_threads()), [&](int64_t, int thread) {
    UnitTaker taker(&shared, thread);
    body(taker);
  });
  shared.in_use = false;
}

}  // namespace bd
