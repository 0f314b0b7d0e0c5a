// How many cache lines a thread has to fetch for a fork-join, for a step and for its tasks, on as
// many cores as threads. The code itself runs, but its threads are fibers that take turns at every
// pause, and its atomics tell a model of caches who reads and writes them: a line comes from
// another core when somebody else has written it, or, to write it, when somebody else has read it.
// Where turns end at any access, by chance, the same code goes through interleavings that threads
// of two cores would not meet.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <algorithm>
#include <atomic>
#include <bitset>
#include <cstdio>
#include <functional>
#include <memory>
#include <random>
#include <unordered_map>
#include <vector>

namespace lines {

constexpr int kMostThreads = 256;

struct Fiber {
  ucontext_t context;
  std::vector<char> stack;
  std::function<void()> body;
  bool done = false;
};

// Fiber 0 is the caller. They take turns, each from one pause to the next.
struct Machine {
  struct Line {
    std::bitset<kMostThreads> holders;
    int writer = -1;  // who may write it, the others having dropped it
  };

  std::vector<std::unique_ptr<Fiber>> fibers;
  size_t current = 0;
  std::unordered_map<uintptr_t, Line> lines;
  std::vector<int64_t> fetched = std::vector<int64_t>(kMostThreads);
  bool by_chance = false;
  std::minstd_rand random;

  void Clear() {
    fibers.clear();
    fibers.push_back(std::make_unique<Fiber>());
    current = 0;
    by_chance = false;
    lines.clear();
    std::fill(fetched.begin(), fetched.end(), 0);
  }
  void Yield() {
    const size_t from = current;
    do {
      current = (by_chance ? random() : current + 1) % fibers.size();
    } while (fibers[current]->done);
    if (current != from) swapcontext(&fibers[from]->context, &fibers[current]->context);
  }
  void Read(const void* p) {
    if (by_chance && random() % 2 == 0) Yield();
    Line& line = lines[reinterpret_cast<uintptr_t>(p) / 64];
    if (line.holders[current]) return;
    line.holders[current] = true;
    line.writer = -1;
    ++fetched[current];
  }
  void Write(const void* p) {
    if (by_chance && random() % 2 == 0) Yield();
    Line& line = lines[reinterpret_cast<uintptr_t>(p) / 64];
    const int me = static_cast<int>(current);
    if (line.writer == me) return;
    line.holders.reset();
    line.holders[current] = true;
    line.writer = me;
    ++fetched[current];
  }
};
Machine machine;

void RunFiber() {
  Fiber& fiber = *machine.fibers[machine.current];
  fiber.body();
  fiber.done = true;
  for (;;) machine.Yield();
}

int Create(pthread_t* thread, void* (*main)(void*), void* argument) {
  *thread = machine.fibers.size();
  auto fiber = std::make_unique<Fiber>();
  fiber->stack.resize(256 << 10);
  fiber->body = [=] { main(argument); };
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = fiber->stack.data();
  fiber->context.uc_stack.ss_size = fiber->stack.size();
  makecontext(&fiber->context, RunFiber, 0);
  machine.fibers.push_back(std::move(fiber));
  return 0;
}

void Join(pthread_t thread) {
  while (!machine.fibers[thread]->done) machine.Yield();
}

}  // namespace lines

namespace std {

template <typename T>
class counted_atomic {
 public:
  counted_atomic() = default;
  constexpr counted_atomic(T value) : value_(value) {}
  T load(memory_order = memory_order_seq_cst) const {
    lines::machine.Read(this);
    return value_;
  }
  void store(T value, memory_order = memory_order_seq_cst) { Written() = value; }
  T fetch_add(T value, memory_order = memory_order_seq_cst) {
    T& mine = Written();
    const T before = mine;
    mine = static_cast<T>(mine + value);
    return before;
  }
  T fetch_sub(T value, memory_order = memory_order_seq_cst) {
    return fetch_add(static_cast<T>(T{} - value));
  }
  T fetch_and(T value, memory_order = memory_order_seq_cst) {
    const T before = Written();
    value_ &= value;
    return before;
  }
  bool compare_exchange_weak(T& seen, T next, memory_order = memory_order_seq_cst,
                             memory_order = memory_order_seq_cst) {
    const bool same = Written() == seen;
    seen = value_;
    if (same) value_ = next;
    return same;
  }
  bool compare_exchange_strong(T& seen, T next, memory_order = memory_order_seq_cst,
                               memory_order = memory_order_seq_cst) {
    return compare_exchange_weak(seen, next);
  }

 private:
  T& Written() {
    lines::machine.Write(this);
    return value_;
  }
  T value_;
};

}  // namespace std

// The pool's own sources, with these atomics and threads, in a namespace of their own.
#define bd counted
#define atomic counted_atomic
#define pthread_create(thread, attributes, main, argument) lines::Create(thread, main, argument)
#define pthread_join(thread, result) lines::Join(thread)
#define pthread_setname_np(thread, name)
#define clock_gettime(clock, time) (*(time) = {})
#define sched_yield() lines::machine.Yield()
#define _mm_pause() lines::machine.Yield()
#include "cc/base/threads/parallel_steps.cc"
#include "cc/base/threads/parallel_units.cc"
#include "cc/base/threads/thread_pool.cc"

namespace counted {
int AvailableCpus() { return 1 << 20; }
}  // namespace counted

namespace counted {
namespace {

struct Fetched {
  int64_t caller, most;  // of the caller, and of the worker that fetches the most
};

// Lines of a call, once caches are warm.
Fetched Count(int threads, const std::function<void(ThreadPool&)>& call, int64_t times = 1) {
  constexpr int kWarm = 3, kCalls = 4;
  lines::machine.Clear();
  ThreadPool pool(threads);
  for (int i = 0; i < kWarm; ++i) call(pool);
  std::vector<int64_t>& fetched = lines::machine.fetched;
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
  for (int64_t i = 0; i < pauses; ++i) lines::machine.Yield();
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
    EXPECT_LE(lines.most, 7);
  }
}

TEST(Lines, OfTasksThatAreUneven) {
  for (int threads : kThreads) {
    const Fetched lines = Count(threads, [&](ThreadPool& pool) {
      pool.ParallelFor(4 * threads, [](int64_t task, int) { Work(10 + task % 7); });
    });
    EXPECT_LE(lines.caller, 11 + threads / 4);
    EXPECT_LE(lines.most, 8);
  }
}

// Where each thread waits for all others it is 66 at 64.
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
    EXPECT_LE(lines.most, 13);
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
    EXPECT_LE(lines.most, 28);
  }
}

// More jobs than have a number, of all sizes.
TEST(Lines, EveryTaskRunsOnceInAnyOrderOfAccesses) {
  for (int threads : {2, 3, 8, 9, 20, 70}) {
    lines::machine.Clear();
    ThreadPool pool(threads);
    lines::machine.random.seed(threads);
    lines::machine.by_chance = true;
    for (int64_t job = 0; job < 300; ++job) {
      const int64_t tasks = 1 + lines::machine.random() % (job % 3 == 0 ? 3 * threads : threads);
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
    lines::machine.by_chance = false;
  }
}

}  // namespace
}  // namespace counted
