// A child of fork() finds every mutex free and what it guards whole, whoever was inside.
#include "cc/base/fork_safe_mutex.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace bd {
namespace {

using Lock = std::lock_guard<ForkSafeMutex>;

// Equal while nobody is inside.
struct Pair {
  ForkSafeMutex mutex;
  int64_t one = 0, other = 0;
  void Add(int64_t value) {
    Lock lock(mutex);
    one += value;
    other += value;
  }
  bool IsWhole() {
    Lock lock(mutex);
    return one == other;
  }
};

// One mutex is taken inside another, in both orders of their making, and others come and go.
TEST(ForkSafeMutex, ChildrenFindThemFree) {
  Pair first, second;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      while (!stop) {
        ForkSafeMutex outer;
        if (t == 0) {
          first.Add(1);
        } else if (t == 1) {
          Lock lock(outer);
          second.Add(1);
        } else {
          Lock lock(first.mutex);
          const auto inner = std::make_unique<ForkSafeMutex>();
          second.Add(1);
        }
      }
    });
  }
  for (int round = 0; round < 200 && !HasFailure(); ++round) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      _exit(first.IsWhole() && second.IsWhole() ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status << " " << round;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(ForkSafeMutex, ExcludesOthers) {
  Pair pair;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) pair.Add(1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pair.one, 4000);
}

}  // namespace
}  // namespace bd
