// How many cache lines a thread has to fetch for a fork-join, for a step and for its tasks, on as
// many cores as threads. The code itself runs, but its threads are fibers that take turns at every
// pause, and its atomics tell a model of caches who reads and writes them: a line comes from
// another core when somebody else has written it, or, to write it, when somebody else has read it.
// Where turns end at any access, by chance, the same code goes through interleavings that threads
// of two cores would not meet.
#define bd counted
#include <gtest/gtest.h>

#include <bitset>
#include <cstdio>
#include <random>
#include <unordered_map>

#include "tests/cc/base/threads/fibers.h"

namespace {

constexpr int kMostThreads = 256;

// Fibers take turns, each from one pause to the next, or at any access.
struct Machine {
  struct Line {
    std::bitset<kMostThreads> holders;
    size_t writer = kMostThreads;  // who may write it, the others having dropped it
  };

  std::unordered_map<uintptr_t, Line> lines;
  std::vector<int64_t> fetched = std::vector<int64_t>(kMostThreads);
  bool by_chance = false;
  std::minstd_rand random;

  void Clear() {
    fibers::Clear();
    by_chance = false;
    lines.clear();
    std::fill(fetched.begin(), fetched.end(), 0);
  }
  Line& Touch(const void* p) {
    if (by_chance && random() % 2 == 0) fibers::OnPause();
    return lines[reinterpret_cast<uintptr_t>(p) / 64];
  }
};
Machine& machine = *new Machine;  // pools at exit still touch it

}  // namespace

namespace fibers {

void OnPause() {
  size_t next = current;
  do {
    next = (machine.by_chance ? machine.random() : next + 1) % all.size();
  } while (all[next]->done);
  SwitchTo(next);
}

void OnRead(const void* p) {
  Machine::Line& line = machine.Touch(p);
  if (line.holders[current]) return;
  line.holders[current] = true;
  line.writer = kMostThreads;
  ++machine.fetched[current];
}

void OnWrite(const void* p) {
  Machine::Line& line = machine.Touch(p);
  if (line.writer == current) return;
  line.holders.reset();
  line.holders[current] = true;
  line.writer = current;
  ++machine.fetched[current];
}

}  // namespace fibers

namespace counted {

int AvailableCpus() { return 1 << 20; }
int PoolCallers() { return 1; }
int CoresOfL3() { return 8; }

namespace {

struct Fetched {
  int64_t caller, most;  // of the caller, and of the worker that fetches the most
};

// Lines of a call, once caches are warm.
Fetched Count(int threads, const std::function<void(ThreadPool&)>& call, int64_t times = 1) {
  constexpr int kWarm = 3, kCalls = 4;
  machine.Clear();
  ThreadPool pool(threads);
  for (int i = 0; i < kWarm; ++i) call(pool);
  std::vector<int64_t>& fetched = machine.fetched;
  std::fill(fetched.begin(), fetched.end(), 0);
  for (int i = 0; i < kCalls; ++i) call(pool);
  const auto of_a_call = [&](int64_t count) {
    return (count + kCalls * times - 1) / (kCalls * times);
  };
  Fetched result = {of_a_call(fetched[0]), 0};
  for (int t = 1; t < threads; ++t) {
    result.most = std::max(result.most, of_a_call(fetched[t]));
  }
  std::printf("%4d threads: caller %3d, worker at most %3d\n", threads,
              static_cast<int>(result.caller), static_cast<int>(result.most));
  return result;
}

void Work(int64_t pauses) {
  for (int64_t i = 0; i < pauses; ++i) fibers::OnPause();
}

constexpr int kThreads[] = {2, 4, 8, 16, 32, 64, 128};

// A caller who writes a line a thread fetches two for each (258 at 128), and threads that look
// for tasks in all regions one for each (133).
TEST(Lines, OfAForkJoin) {
  for (int threads : kThreads) {
    const Fetched lines = Count(threads, [&](ThreadPool& pool) {
      pool.ParallelFor(threads, [](int64_t, int) { Work(20); });
    });
    EXPECT_LE(lines.caller, 5 + threads / 4);
    EXPECT_LE(lines.most, 6);
  }
}

TEST(Lines, OfTasksThatAreUneven) {
  for (int threads : kThreads) {
    const Fetched lines = Count(threads, [&](ThreadPool& pool) {
      pool.ParallelFor(4 * threads, [](int64_t task, int) { Work(10 + task % 7); });
    });
    EXPECT_LE(lines.caller, 11 + threads / 4);
    EXPECT_LE(lines.most, 7);
  }
}

// Where each thread waits for all others it is 66 at 64, and for all of its neighbours 13.
TEST(Lines, OfAStep) {
  constexpr int64_t kSteps = 50;
  for (int threads : kThreads) {
    if (threads > 64) continue;
    const Fetched lines = Count(
        threads,
        [&](ThreadPool& pool) {
          ParallelSteps(pool, kSteps, threads, [](int64_t, int64_t, int) { Work(20); });
        },
        kSteps);
    EXPECT_LE(lines.most, 4);
  }
}

// Thieves that look at all threads fetch 263 at 128.
TEST(Lines, OfUnits) {
  for (int threads : kThreads) {
    const Fetched lines = Count(threads, [&](ThreadPool& pool) {
      ParallelUnits(pool, threads, [](UnitTaker& taker) {
        for (int64_t task; taker.NextTask(&task);) {
          taker.Publish(8);
          for (Units u; taker.Next(0.25, 1, &u);) Work(4 * (u.end - u.begin));
        }
        for (Units u; taker.Steal(0.5, 1, &u);) Work(4 * (u.end - u.begin));
      });
    });
    EXPECT_LE(lines.caller, 25 + threads / 4);
    EXPECT_LE(lines.most, 26);
  }
}

// More jobs than have a number, of all sizes, by several callers at the same time.
TEST(Lines, EveryTaskRunsOnceInAnyOrderOfAccesses) {
  const auto run_jobs = [](ThreadPool& pool, int threads, int64_t jobs) {
    for (int64_t job = 0; job < jobs; ++job) {
      const int64_t tasks = 1 + machine.random() % (job % 3 == 0 ? 3 * threads : threads);
      std::vector<int> runs(tasks), units(4 * tasks), steps(tasks);
      pool.ParallelFor(tasks, [&](int64_t task, int) { ++runs[task]; });
      ParallelUnits(pool, tasks, [&](UnitTaker& taker) {
        const auto run = [&](const Units& u) {
          for (int64_t i = u.begin; i < u.end; ++i) ++units[4 * u.task + i];
        };
        for (int64_t task; taker.NextTask(&task);) {
          taker.Publish(4);
          for (Units u; taker.Next(0.5, 1, &u);) run(u);
        }
        for (Units u; taker.Steal(0.5, 1, &u);) run(u);
      });
      bool in_order = true;
      ParallelSteps(pool, 3, tasks, [&](int64_t step, int64_t chunk, int) {
        in_order = in_order && steps[chunk]++ == step &&
                   *std::min_element(steps.begin(), steps.end()) >= step;
      });
      for (int count : runs) ASSERT_EQ(count, 1) << threads << " threads, job " << job;
      for (int count : units) ASSERT_EQ(count, 1) << threads << " threads, job " << job;
      for (int count : steps) ASSERT_EQ(count, 3) << threads << " threads, job " << job;
      ASSERT_TRUE(in_order) << threads << " threads, job " << job;
    }
  };
  for (int callers : {1, 3}) {
    for (int threads : {2, 3, 8, 9, 20, 70}) {
      machine.Clear();
      ThreadPool pool(threads);
      machine.random.seed(threads);
      machine.by_chance = true;
      std::vector<size_t> others(callers - 1);
      for (size_t& fiber : others) fiber = fibers::Create([&] { run_jobs(pool, threads, 10); });
      run_jobs(pool, threads, callers == 1 ? 120 : 10);
      for (size_t fiber : others) fibers::Join(fiber);
      machine.by_chance = false;
    }
  }
}

// Callers that are alone again get all threads again.
TEST(Lines, OfCallersThatShare) {
  machine.Clear();
  ThreadPool pool(16);
  int64_t first = 0, second = 0;
  const size_t other = fibers::Create([&] {
    for (; second < 200; ++second) pool.ParallelFor(16, [](int64_t, int) { Work(20); });
  });
  std::vector<int> team_threads;
  while (second < 200) {
    pool.ParallelFor(16, [](int64_t, int) { Work(20); });
    if (++first > 20) team_threads.push_back(pool.team_threads());
  }
  fibers::Join(other);
  EXPECT_EQ(*std::min_element(team_threads.begin(), team_threads.end()), 8);
  EXPECT_EQ(*std::max_element(team_threads.begin(), team_threads.end()), 8);
  EXPECT_GT(first, 100);  // a caller who runs inline meanwhile takes eight times as long
  EXPECT_LT(first, 400);
  for (int i = 0; i < 200; ++i) pool.ParallelFor(16, [](int64_t, int) { Work(20); });
  EXPECT_EQ(pool.team_threads(), 16);
}

}  // namespace
}  // namespace counted
