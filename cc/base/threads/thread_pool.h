// The pool every primitive runs on: bounded waiting awake, then sleep; a thread's tasks are the
// same in every job, and it helps with others' when they are done.
//
// A fork-join costs well under a microsecond while the workers are awake (0.3 ms after
// their last task, most of it ready to yield), some 20 us once they sleep. A job waits only for
// workers that have begun: a sleeping or descheduled worker delays nobody. Work below about
// 20 us is best given as one task. The protocol is in thread_pool.cc.
#pragma once

#include <cstdint>

#include "cc/base/function_ref.h"

namespace bd {

// body(task, thread): `thread` is in [0, num_threads()) and no two bodies of
// one ParallelFor run at the same time with the same `thread`, so it may index
// per-thread scratch.
using ParallelBody = FunctionRef<void(int64_t task, int thread)>;

class ThreadPool {
 public:
  // `num_threads` counts the caller: a pool of 1 starts no worker. So many for each of `callers`
  // that call at the same time; where more do, they share all of these in equal parts (PlanTeams in
  // pool_size.h). Workers start with the first job that needs them; nobody may use a
  // pool being destroyed.
  explicit ThreadPool(int num_threads, int callers = 1);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Of one ParallelFor at most: what plans and scratch are made for.
  int num_threads() const { return num_threads_; }

  // About what one gets now, since others call, too.
  int team_threads() const;

  // Runs body for every task in [0, num_tasks); returns when all are done.
  // Each thread takes the tasks of its region of them in order, then those at the end of others'.
  // Safe from many callers at once: each takes a team of workers; who finds none free, and
  // who calls from inside a body, runs its tasks inline as thread 0. Workers compute
  // under the caller's rounding and flush-to-zero modes. Bodies must not throw.
  void ParallelFor(int64_t num_tasks, ParallelBody body);

  // The same of [0, count), cut into `tasks` ranges, or fewer, whose sizes differ by one at most:
  // body(begin, end, thread). Nothing runs where there are no tasks.
  template <typename Body>
  void ForRanges(int64_t count, int64_t tasks, Body&& body) {
    if (count <= 0 || tasks <= 0) return;
    const int64_t ranges = tasks < count ? tasks : count, least = count / ranges;
    const int64_t longer = count % ranges;
    const auto begin = [=](int64_t t) { return least * t + (t < longer ? t : longer); };
    ParallelFor(ranges, [&](int64_t t, int thread) { body(begin(t), begin(t + 1), thread); });
  }

  // The process-wide pool of that size (clamped to 1 .. 1024), for PoolCallers(), created at first
  // use, joined at exit and never freed. As with every pool, a forked child gets
  // workers of its own; fork from outside a body.
  static ThreadPool& Shared(int num_threads);

 private:
  struct Team;
  struct Impl;
  Impl* impl_;
  int num_threads_;
};

}  // namespace bd
