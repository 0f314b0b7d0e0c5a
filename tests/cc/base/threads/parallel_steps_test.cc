#include "cc/base/threads/parallel_steps.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace bd {
namespace {

class ParallelStepsSizes : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, ParallelStepsSizes, testing::Values(1, 2, 3, 8, 100));

// What a body writes is not atomic: ThreadSanitizer sees a step that begins too early.
TEST_P(ParallelStepsSizes, EveryStepNeedsAllOfTheLast) {
  ThreadPool pool(GetParam());
  for (int64_t chunks : {1, 2, 3, 7, 64, 200}) {
    constexpr int64_t kSteps = 40;
    std::vector<int64_t> count(chunks, 0), next(chunks, 0);
    std::atomic<int> wrong{0};
    ParallelSteps(pool, kSteps, chunks, [&](int64_t step, int64_t chunk, int) {
      const std::vector<int64_t>& from = step % 2 == 0 ? count : next;
      for (int64_t value : from) wrong += value != step;
      (step % 2 == 0 ? next : count)[chunk] = step + 1;
    });
    EXPECT_EQ(wrong, 0) << chunks << " chunks";
    for (int64_t value : kSteps % 2 == 0 ? count : next) EXPECT_EQ(value, kSteps);
  }
}

TEST_P(ParallelStepsSizes, RunsEveryChunkOnce) {
  ThreadPool pool(GetParam());
  for (int64_t chunks : {0, 1, 5, 130}) {
    for (int64_t steps : {0, 1, 2, 9}) {
      std::vector<std::atomic<int>> runs(chunks * steps);
      ParallelSteps(pool, steps, chunks,
                    [&](int64_t step, int64_t chunk, int) { ++runs[step * chunks + chunk]; });
      for (const std::atomic<int>& times : runs) ASSERT_EQ(times, 1);
    }
  }
}

TEST_P(ParallelStepsSizes, ThreadsAreNotShared) {
  ThreadPool pool(GetParam());
  std::vector<std::atomic<int>> busy(GetParam());
  std::atomic<int> shared{0};
  ParallelSteps(pool, 20, 10, [&](int64_t, int64_t, int thread) {
    if (busy[thread].fetch_add(1) != 0) ++shared;
    std::this_thread::yield();
    busy[thread].fetch_sub(1);
  });
  EXPECT_EQ(shared, 0);
}

// Callers that do not get the workers do all steps by themselves.
TEST(ParallelSteps, ManyCallersAtOnce) {
  ThreadPool pool(3);
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back([&] {
      for (int repeat = 0; repeat < 10; ++repeat) {
        ParallelSteps(pool, 5, 21, [&](int64_t, int64_t chunk, int) { sum += chunk; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 8 * 10 * 5 * 210);
}

// With one thread held up in a chunk of every step, the others do all the rest of it.
TEST(ParallelSteps, OthersHelp) {
  ThreadPool pool(2);
  constexpr int64_t kChunks = 10;
  std::vector<std::atomic<int64_t>> done(4);
  ParallelSteps(pool, 4, kChunks, [&](int64_t step, int64_t chunk, int) {
    if (chunk == 0) {
      while (done[step] < kChunks - 1) std::this_thread::yield();
    }
    ++done[step];
  });
  for (const std::atomic<int64_t>& count : done) EXPECT_EQ(count, kChunks);
}

}  // namespace
}  // namespace bd
