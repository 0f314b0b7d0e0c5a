#include "cc/base/threads/parallel_units.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace bd {
namespace {

class ParallelUnitsSizes : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, ParallelUnitsSizes, testing::Values(1, 2, 3, 8, 100));

// Runs tasks of 1, 2, 3 ... units and calls unit(task, unit, payload, thread) for each.
template <typename Unit>
void RunAll(ThreadPool& pool, int64_t tasks, double fraction, Unit&& unit) {
  ParallelUnits(pool, tasks, [&](UnitTaker& taker) {
    const auto all = [&](const Units& u) {
      for (int64_t i = u.begin; i < u.end; ++i) unit(u.task, i, u.payload, taker.thread());
    };
    for (int64_t task; taker.NextTask(&task);) {
      taker.Publish(task + 1, static_cast<int>(3 * task));
      for (Units u; taker.Next(fraction, 2, &u);) all(u);
    }
    for (Units u; taker.Steal(fraction, 2, &u);) all(u);
  });
}

TEST_P(ParallelUnitsSizes, RunsEveryUnitOnce) {
  ThreadPool pool(GetParam());
  for (double fraction : {0., 0.5, 1.}) {
    for (int64_t tasks : {0, 1, 2, 3, 7, 40}) {
      std::vector<std::atomic<int>> runs(tasks * tasks);
      std::atomic<int> wrong{0};
      RunAll(pool, tasks, fraction, [&](int64_t task, int64_t unit, int payload, int) {
        runs[task * tasks + unit].fetch_add(1);
        wrong += payload != 3 * task || unit > task;
      });
      EXPECT_EQ(wrong, 0);
      for (int64_t i = 0; i < tasks * tasks; ++i) {
        ASSERT_EQ(runs[i], i % tasks <= i / tasks ? 1 : 0) << i << " of " << tasks << " tasks";
      }
    }
  }
}

TEST_P(ParallelUnitsSizes, ThreadsAreNotShared) {
  ThreadPool pool(GetParam());
  std::vector<std::atomic<int>> busy(GetParam());
  std::atomic<int> shared{0};
  RunAll(pool, 30, 0.5, [&](int64_t, int64_t, int, int thread) {
    if (busy[thread].fetch_add(1) != 0) ++shared;
    std::this_thread::yield();
    busy[thread].fetch_sub(1);
  });
  EXPECT_EQ(shared, 0);
}

// An owner goes through its units in order; what others take is at the end.
// More threads than there are regions of tasks share these.
TEST_P(ParallelUnitsSizes, EveryThreadTakesPart) {
  const int threads = GetParam();
  ThreadPool pool(threads);
  std::atomic<int> arrived{0};
  ParallelUnits(pool, threads, [&](UnitTaker& taker) {
    for (int64_t task; taker.NextTask(&task);) {
      ++arrived;
      while (arrived < threads) std::this_thread::yield();
    }
  });
  EXPECT_EQ(arrived, threads);
}

TEST(ParallelUnits, OwnersBeginAtTheFront) {
  ThreadPool pool(4);
  constexpr int64_t kTasks = 4, kUnits = 5000;
  std::atomic<int> disordered{0};
  ParallelUnits(pool, kTasks, [&](UnitTaker& taker) {
    for (int64_t task; taker.NextTask(&task);) {
      taker.Publish(kUnits);
      int64_t at = 0;
      for (Units u; taker.Next(0, 1, &u); at = u.end) {
        disordered += u.task != task || u.begin != at || u.end != at + 1;
      }
    }
    int64_t last[kTasks] = {kUnits, kUnits, kUnits, kUnits};
    for (Units u; taker.Steal(0.3, 1, &u);) {
      disordered += u.end > last[u.task] || u.begin >= u.end;
      last[u.task] = u.begin;
    }
  });
  EXPECT_EQ(disordered, 0);
}

// With one thread held up in its first unit, the others do all the rest of its task.
TEST(ParallelUnits, OthersHelp) {
  ThreadPool pool(2);
  constexpr int64_t kTasks = 2, kUnits = 10;
  std::atomic<int64_t> done{0}, stolen{0};
  const auto run = [&](const Units& u) {
    if (u.task == 0 && u.begin == 0) {
      while (done < kTasks * kUnits - 1) std::this_thread::yield();
    }
    done += u.end - u.begin;
  };
  ParallelUnits(pool, kTasks, [&](UnitTaker& taker) {
    for (int64_t task; taker.NextTask(&task);) {
      taker.Publish(kUnits);
      for (Units u; taker.Next(0, 1, &u);) run(u);
    }
    for (Units u; taker.Steal(0.5, 1, &u);) {
      stolen += u.end - u.begin;
      run(u);
    }
  });
  EXPECT_EQ(done, kTasks * kUnits);
  EXPECT_EQ(stolen, kUnits - 1);
}

// More units than can be published are their owner's alone.
TEST(ParallelUnits, ManyUnits) {
  ThreadPool pool(2);
  constexpr int64_t kUnits = int64_t{1} << 21;
  std::atomic<int64_t> done{0}, stolen{0};
  ParallelUnits(pool, 3, [&](UnitTaker& taker) {
    for (int64_t task; taker.NextTask(&task);) {
      taker.Publish(kUnits);
      for (Units u; taker.Next(0.25, 1, &u);) done += u.end - u.begin;
    }
    for (Units u; taker.Steal(0.5, 1, &u);) ++stolen;
  });
  EXPECT_EQ(done, 3 * kUnits);
  EXPECT_EQ(stolen, 0);
}

}  // namespace
}  // namespace bd
