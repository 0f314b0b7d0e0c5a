#include "cc/base/threads/parallel_regions.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace bd {
namespace {

class ParallelRegionsSizes : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, ParallelRegionsSizes, testing::Values(1, 2, 3, 8, 100));

TEST_P(ParallelRegionsSizes, RunsEveryChunkOnce) {
  ThreadPool pool(GetParam());
  for (int64_t n : {0, 1, 2, 3, 7, 64, 65, 1000}) {
    std::vector<std::atomic<int>> runs(n);
    ParallelRegions(pool, n, [&](int64_t chunk, int) { runs[chunk].fetch_add(1); });
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(runs[i], 1) << "chunk " << i << " of " << n;
  }
}

// No two bodies at once have the same thread, so it may index scratch.
TEST_P(ParallelRegionsSizes, ThreadsAreNotShared) {
  ThreadPool pool(GetParam());
  std::vector<std::atomic<int>> busy(GetParam());
  std::atomic<int> shared{0};
  ParallelRegions(pool, 300, [&](int64_t, int thread) {
    if (busy[thread].fetch_add(1) != 0) ++shared;
    std::this_thread::yield();
    busy[thread].fetch_sub(1);
  });
  EXPECT_EQ(shared, 0);
}

TEST(ParallelRegions, ManyCallersAtOnce) {
  ThreadPool pool(3);
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back([&] {
      for (int repeat = 0; repeat < 50; ++repeat) {
        ParallelRegions(pool, 21, [&](int64_t chunk, int) { sum += chunk; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 8 * 50 * 210);
}

// With one thread held up in its first chunk, the others do all the rest.
TEST(ParallelRegions, OthersHelp) {
  ThreadPool pool(2);
  constexpr int64_t kChunks = 10;
  std::atomic<int64_t> done{0};
  std::mutex mutex;
  std::set<std::thread::id> threads;
  ParallelRegions(pool, kChunks, [&](int64_t chunk, int) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      threads.insert(std::this_thread::get_id());
    }
    if (chunk == 0) {
      while (done < kChunks - 1) std::this_thread::yield();
    }
    ++done;
  });
  EXPECT_EQ(done, kChunks);
  EXPECT_EQ(threads.size(), 2u);
}

}  // namespace
}  // namespace bd
