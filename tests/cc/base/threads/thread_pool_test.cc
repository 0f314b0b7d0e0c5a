#include "cc/base/threads/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

namespace bd {
namespace {

#ifdef BD_TSAN
constexpr bool kThreadSanitizer = true;
#else
constexpr bool kThreadSanitizer = false;
#endif

using Clock = std::chrono::steady_clock;

// Sum of 0 .. n-1, as a job.
int64_t ParallelSum(ThreadPool& pool, int64_t n) {
  std::atomic<int64_t> sum{0};
  pool.ParallelFor(n, [&](int64_t task, int) { sum.fetch_add(task, std::memory_order_relaxed); });
  return sum;
}

// True if so many tasks are all in progress at the same time, which takes as many threads, and
// then `leave` is true; gives up after ten seconds.
bool ThreadsMeet(ThreadPool& pool, int threads, std::atomic<int>* arrived,
                 const std::atomic<bool>& leave) {
  const auto deadline = Clock::now() + std::chrono::seconds(10);
  std::atomic<bool> late{false};
  pool.ParallelFor(threads, [&](int64_t, int) {
    arrived->fetch_add(1);
    while ((arrived->load() < threads || !leave.load()) && !late.load()) {
      sched_yield();
      if (Clock::now() > deadline) late = true;
    }
  });
  return !late;
}

// The same of all threads that a call now gets.
bool AllThreadsMeet(ThreadPool& pool) {
  std::atomic<int> arrived{0};
  return ThreadsMeet(pool, pool.team_threads(), &arrived, true);
}

// A caller whose threads meet until it leaves.
struct Holder {
  Holder(ThreadPool& pool, int threads)
      : thread(
            [this, &pool, threads] { EXPECT_TRUE(ThreadsMeet(pool, threads, &arrived, leave)); }) {
    while (arrived < threads) sched_yield();
  }
  ~Holder() {
    leave = true;
    thread.join();
  }
  std::atomic<int> arrived{0};
  std::atomic<bool> leave{false};
  std::thread thread;
};

class ThreadPoolSizes : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, ThreadPoolSizes, testing::Values(1, 2, 3, 8, 64));

TEST_P(ThreadPoolSizes, RunsEveryTaskOnce) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.num_threads(), GetParam());
  for (int64_t n : {0, 1, 2, 3, 63, 64, 65, 5000}) {
    std::vector<std::atomic<int>> runs(n);
    pool.ParallelFor(n, [&](int64_t task, int) { runs[task].fetch_add(1); });
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(runs[i], 1) << "task " << i << " of " << n;
  }
}

TEST_P(ThreadPoolSizes, CutsACountIntoEvenRanges) {
  ThreadPool pool(GetParam());
  for (int64_t count : {0, 1, 2, 7, 64, 1000}) {
    for (int64_t tasks : {0, 1, 3, 7, 64}) {
      std::vector<std::atomic<int>> runs(count);
      std::atomic<int64_t> ranges{0};
      const int64_t cut = std::min(count, tasks);
      pool.ForRanges(count, tasks, [&](int64_t begin, int64_t end, int) {
        ++ranges;
        EXPECT_GE(end - begin, count / cut);
        EXPECT_LE(end - begin, (count + cut - 1) / cut);
        for (int64_t i = begin; i < end; ++i) ++runs[i];
      });
      EXPECT_EQ(ranges, cut) << count << " in " << tasks;
      for (auto& of_one : runs) ASSERT_EQ(of_one, tasks > 0) << count << " in " << tasks;
    }
  }
}

// Who begins with the first tasks of a region, begins with them in every job.
TEST_P(ThreadPoolSizes, AThreadBeginsWithTasksOfItsOwn) {
  const int threads = GetParam();
  ThreadPool pool(threads);
  const int64_t each = 5;
  for (int job = 0; job < 3; ++job) {
    std::vector<int> of_task(threads * each, -1);
    std::atomic<int> arrived{0};
    pool.ParallelFor(threads * each, [&](int64_t task, int thread) {
      of_task[task] = thread;
      if (task % each != 0) return;
      ++arrived;
      while (arrived < threads) sched_yield();
    });
    for (int t = 0; t < threads; ++t) EXPECT_EQ(of_task[t * each], t);
  }
}

// With one thread held up in the first task, another one does the rest of its region, too.
TEST(ThreadPool, OthersHelp) {
  ThreadPool pool(2);
  constexpr int64_t kTasks = 10;
  std::atomic<int64_t> done{0};
  std::vector<int> of_task(kTasks);
  pool.ParallelFor(kTasks, [&](int64_t task, int thread) {
    of_task[task] = thread;
    while (task == 0 && done < kTasks - 1) sched_yield();
    ++done;
  });
  std::vector<int> expected(kTasks, 1 - of_task[0]);
  expected[0] = of_task[0];
  EXPECT_EQ(of_task, expected);
}

// Whoever yields its core instead gets it back from a busy process after milliseconds.
TEST(ThreadPool, ACallerThatWaitsForLongSleeps) {
  ThreadPool pool(2);
  const auto cpu_milliseconds = [] {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
  };
  std::atomic<int> arrived{0};
  int64_t before = 0;
  pool.ParallelFor(2, [&](int64_t, int thread) {
    arrived.fetch_add(1);
    while (arrived < 2) sched_yield();
    if (thread == 0) {
      before = cpu_milliseconds();
    } else {
      usleep(60000);
    }
  });
  EXPECT_LT(cpu_milliseconds() - before, 10);
}

TEST_P(ThreadPoolSizes, ThreadIndexIsExclusive) {
  ThreadPool pool(GetParam());
  std::vector<int64_t> plain_counter(GetParam());  // a race here is a failure under TSan
  std::vector<std::atomic<bool>> in_use(GetParam());
  std::atomic<bool> clash{false};
  for (int round = 0; round < 50; ++round) {
    pool.ParallelFor(200, [&](int64_t, int thread) {
      if (in_use[thread].exchange(true)) clash = true;
      ++plain_counter[thread];
      in_use[thread] = false;
    });
  }
  EXPECT_FALSE(clash);
  int64_t total = 0;
  for (int64_t count : plain_counter) total += count;
  EXPECT_EQ(total, 50 * 200);
}

// Its own tasks ascend, and so do not those that it takes from others.
TEST_P(ThreadPoolSizes, OwnTasksAreInOrder) {
  const int threads = GetParam();
  ThreadPool pool(threads);
  constexpr int64_t kTasks = 6400;
  const auto first_of = [&](int64_t t) { return (kTasks * t + threads - 1) / threads; };
  std::vector<int64_t> last(threads, -1);
  std::atomic<bool> ordered{true};
  pool.ParallelFor(kTasks, [&](int64_t task, int thread) {
    if (task < first_of(thread) || task >= first_of(thread + 1)) return;
    if (task <= last[thread]) ordered = false;
    last[thread] = task;
  });
  EXPECT_TRUE(ordered);
}

TEST_P(ThreadPoolSizes, WritesAreVisibleToTheCallerAndTheNextJob) {
  ThreadPool pool(GetParam());
  std::vector<int64_t> values(300, 0);
  for (int64_t round = 0; round < 300; ++round) {
    pool.ParallelFor(300, [&](int64_t task, int) { values[299 - task] += task + round; });
    ASSERT_EQ(values[0], 299 * (round + 1) + round * (round + 1) / 2);
  }
}

TEST(ThreadPool, NonPositiveSizeMeansTheCallerAlone) {
  ThreadPool pool(0);
  EXPECT_EQ(pool.num_threads(), 1);
  EXPECT_EQ(ParallelSum(pool, 10), 45);
}

TEST(ThreadPool, NegativeTaskCountRunsNothing) {
  ThreadPool pool(2);
  pool.ParallelFor(-3, [](int64_t, int) { FAIL(); });
}

// A lost wake-up leaves a thread asleep while the job waits for it. The pauses
// sweep across the moment at which workers stop spinning and go to sleep.
TEST(ThreadPool, NoWakeUpIsLost) {
  for (int threads : {2, 5, 16}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 300; ++round) {
      const auto resume = Clock::now() + std::chrono::nanoseconds(200 * round);
      while (Clock::now() < resume) {
      }
      ASSERT_TRUE(AllThreadsMeet(pool)) << threads << " threads, round " << round;
    }
    usleep(5000);
    ASSERT_TRUE(AllThreadsMeet(pool));
  }
}

TEST(ThreadPool, NestedCallsRunInlineAsThreadZero) {
  ThreadPool pool(4);
  std::atomic<int64_t> sum{0};
  std::atomic<bool> inline_as_zero{true};
  pool.ParallelFor(50, [&](int64_t, int) {
    const std::thread::id self = std::this_thread::get_id();
    int64_t next = 0;
    pool.ParallelFor(20, [&](int64_t inner, int thread) {
      if (thread != 0 || inner != next++ || std::this_thread::get_id() != self) {
        inline_as_zero = false;
      }
      sum.fetch_add(inner);
    });
  });
  EXPECT_TRUE(inline_as_zero);
  EXPECT_EQ(sum, 50 * 190);
}

TEST(ThreadPool, NestedPoolsMakeProgress) {
  ThreadPool outer(3), inner(3);
  std::atomic<int64_t> sum{0};
  for (int round = 0; round < 20; ++round) {
    outer.ParallelFor(10, [&](int64_t, int) { sum += ParallelSum(inner, 20); });
  }
  EXPECT_EQ(sum, 20 * 10 * 190);
}

void CallFromMany(ThreadPool& pool) {
  const auto stop = Clock::now() + std::chrono::milliseconds(500);
  std::atomic<int64_t> wrong{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 32; ++c) {
    callers.emplace_back([&, c] {
      for (int64_t n = c; Clock::now() < stop; n = (n * 5 + 1) % 97) {
        if (ParallelSum(pool, n) != n * (n - 1) / 2) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

// 32 callers, a pool of 8 or 64: far more threads than any test machine has cores.
TEST(ThreadPool, ManyCallersAtOnce) {
  for (int threads : {8, 64}) CallFromMany(ThreadPool::Shared(threads));
}

// Two callers have half of the threads each, and one that remains has all again.
TEST(ThreadPool, CallersShareTheThreads) {
  ThreadPool pool(8);
  {
    const Holder all(pool, 8);
    EXPECT_EQ(ParallelSum(pool, 5), 10);  // inline
    EXPECT_EQ(pool.team_threads(), 4);
  }
  {
    const Holder half(pool, 4), other_half(pool, 4);
    EXPECT_EQ(pool.team_threads(), 4);
  }
  for (int run = 0; run < 128; ++run) EXPECT_EQ(ParallelSum(pool, 5), 10);
  EXPECT_EQ(pool.team_threads(), 8);
  EXPECT_TRUE(AllThreadsMeet(pool));
}

// As many callers as are told have the threads that they are told, from the first job on.
TEST(ThreadPool, ToldCallersHaveTeamsOfTheirOwn) {
  ThreadPool pool(3, 2);
  EXPECT_EQ(pool.num_threads(), 3);
  const Holder one(pool, 3), other(pool, 3);
  EXPECT_EQ(pool.team_threads(), 3);
}

TEST(ThreadPool, HeavilyOversubscribedPoolsFinish) {
  std::vector<std::unique_ptr<ThreadPool>> pools;
  for (int i = 0; i < 4; ++i) pools.push_back(std::make_unique<ThreadPool>(32));
  std::vector<std::thread> callers;
  std::atomic<int64_t> wrong{0};
  for (auto& pool : pools) {
    callers.emplace_back([&wrong, &pool] {
      for (int round = 0; round < 200; ++round) {
        if (ParallelSum(*pool, 100) != 4950) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ThreadPool, WorkersComputeUnderTheCallersFloatControl) {
  ThreadPool pool(4);
  ASSERT_TRUE(AllThreadsMeet(pool));
  const unsigned before = _mm_getcsr();
  constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040;
  for (unsigned mode : {kFlushToZero | kDenormalsAreZero, 0u}) {
    _mm_setcsr((before & ~(kFlushToZero | kDenormalsAreZero)) | mode);
    std::atomic<int> differing{0};
    std::atomic<int> arrived{0};
    pool.ParallelFor(4, [&](int64_t, int) {
      if ((_mm_getcsr() & (kFlushToZero | kDenormalsAreZero)) != mode) ++differing;
      ++arrived;
      while (arrived < 4) sched_yield();
    });
    EXPECT_EQ(differing, 0);
  }
  _mm_setcsr(before);
}

TEST(ThreadPool, StartAndStopRepeatedly) {
  for (int round = 0; round < 100; ++round) {
    ThreadPool pool(1 + round % 5);
    if (round % 3 > 0) {
      ASSERT_EQ(ParallelSum(pool, round), round * (round - 1) / 2);
    }
    if (round % 3 > 1) usleep(100);
  }
}

TEST(ThreadPool, SharedIsOnePoolASize) {
  EXPECT_EQ(&ThreadPool::Shared(3), &ThreadPool::Shared(3));
  EXPECT_NE(&ThreadPool::Shared(3), &ThreadPool::Shared(4));
  EXPECT_EQ(ThreadPool::Shared(3).num_threads(), 3);
  EXPECT_EQ(ThreadPool::Shared(-1).num_threads(), 1);
}

// Runs `body` in a forked child; true if it exits with 0 within ten seconds.
template <typename Body>
bool ForkedChildSucceeds(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    body();
    exit(0);  // not _exit: static destructors join the pools
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(ThreadPool, ForkedChildHasWorkersOfItsOwn) {
  if (kThreadSanitizer) GTEST_SKIP() << "TSan does not follow threads started after a fork";
  ThreadPool own(3);
  for (ThreadPool* pool : {&ThreadPool::Shared(4), &own}) {
    ASSERT_TRUE(AllThreadsMeet(*pool));
    for (int round = 0; round < 5; ++round) {
      EXPECT_TRUE(ForkedChildSucceeds([&] {
        if (!AllThreadsMeet(*pool)) _exit(1);
        if (!ForkedChildSucceeds([&] { _exit(AllThreadsMeet(*pool) ? 0 : 1); })) _exit(2);
      }));
    }
    EXPECT_TRUE(AllThreadsMeet(*pool));
  }
}

TEST(ThreadPool, ForkWhileOthersCompute) {
  if (kThreadSanitizer) GTEST_SKIP() << "TSan does not follow threads started after a fork";
  ThreadPool& pool = ThreadPool::Shared(4);
  std::atomic<bool> stop{false};
  std::vector<std::thread> callers;
  for (int c = 0; c < 3; ++c) {
    callers.emplace_back([&] {
      while (!stop) ParallelSum(pool, 30);
    });
  }
  for (int round = 0; round < 30; ++round) {
    EXPECT_TRUE(ForkedChildSucceeds([&] {
      if (ParallelSum(pool, 100) != 4950) _exit(1);
      if (!AllThreadsMeet(pool)) _exit(2);
    }));
  }
  stop = true;
  for (std::thread& caller : callers) caller.join();
}

TEST(ThreadPool, ForkedChildMayExitWithoutUsingThePool) {
  ASSERT_TRUE(AllThreadsMeet(ThreadPool::Shared(4)));
  EXPECT_TRUE(ForkedChildSucceeds([] {}));
}

// The process ends by exit(7) in `body` or after it, within ten seconds.
template <typename Body>
void ExpectExit(Body body) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        alarm(10);
        body();
        exit(7);
      },
      testing::ExitedWithCode(7), "");
}

TEST(ThreadPoolDeathTest, ExitWhileWorkersSpin) {
  ExpectExit([] { AllThreadsMeet(ThreadPool::Shared(4)); });
}

TEST(ThreadPoolDeathTest, ExitWhileWorkersSleep) {
  ExpectExit([] {
    AllThreadsMeet(ThreadPool::Shared(4));
    usleep(10000);
  });
}

TEST(ThreadPoolDeathTest, ExitWhileOtherThreadsCompute) {
  ExpectExit([] {
    for (int c = 0; c < 3; ++c) {
      std::thread([] {
        for (;;) ParallelSum(ThreadPool::Shared(4), 30);
      }).detach();
    }
    usleep(10000);
  });
}

TEST(ThreadPoolDeathTest, ExitFromInsideATask) {
  if (kThreadSanitizer) GTEST_SKIP() << "TSan reports the threads left behind";
  ExpectExit([] {
    ThreadPool::Shared(4).ParallelFor(100, [](int64_t task, int) {
      if (task == 50) exit(7);
    });
    _exit(1);  // a task has exited before
  });
}

}  // namespace
}  // namespace bd
