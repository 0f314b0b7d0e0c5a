// Packed weights in forked children, and that nobody waits for other weights.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/cc/tensorflow/weights/support.h"

namespace bd {
namespace {

// Takes `weights` in a forked child: packed there, in time, and right.
bool ChildTakes(WeightsCache* cache, const Tensor& weights, Doubling* doubling) {
  Execution execution;
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    WeightsLease own;
    const bool taken = cache->Take(execution.ctx(), weights, Request("a", *doubling), &own).ok();
    _exit(taken && First(own) == 2 * weights.flat<float>()(0) ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// While one thread packs, others take what is packed already, and a child process that is
// forked then packs for itself.
TEST(WeightsCache, NobodyWaitsForOtherWeights) {
  const Tensor slow = Weights(3), quick = Weights(4);
  WeightsCache cache(0, WeightsChange::kNever);
  std::atomic<bool> packing{false}, go_on{false};
  std::thread packer([&] {
    Execution execution;
    WeightsLease lease;
    const auto waits = [&](const void*, void* packed) {
      packing = true;
      while (!go_on) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      memset(packed, 0, kCount * sizeof(float));
    };
    AbortUnless(
        cache.Take(execution.ctx(), slow, Request("a", 1, waits, kCount * sizeof(float)), &lease));
  });
  while (!packing) std::this_thread::yield();

  Execution execution;
  Doubling doubling;
  WeightsLease lease;
  AbortUnless(cache.Take(execution.ctx(), quick, Request("a", doubling), &lease));
  EXPECT_EQ(First(lease), 8);

  EXPECT_TRUE(ChildTakes(&cache, slow, &doubling));
  go_on = true;
  packer.join();
}

// Threads that pack, take, drop and make caches all the time: no child finds a lock taken.
TEST(WeightsCache, ForkAtAnyTime) {
  const Tensor weights = Weights(3);
  WeightsCache cache(0, WeightsChange::kNever);
  Doubling doubling;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      Execution execution;
      for (int64_t i = 0; !stop; ++i) {
        WeightsLease lease;
        WeightsCache own(0, WeightsChange::kNever);
        const PackRequest request = Request("a", doubling, i % 8);
        AbortUnless((i % 3 ? cache : own).Take(execution.ctx(), weights, request, &lease));
        if (i % 16 == 0) cache.Release();
      }
    });
  }
  for (int round = 0; round < 100 && !HasFailure(); ++round) {
    EXPECT_TRUE(ChildTakes(&cache, weights, &doubling)) << round;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace bd
