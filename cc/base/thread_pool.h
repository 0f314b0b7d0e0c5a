// The pool every primitive runs on: bounded spin, then sleep; dynamic chunks.
#ifndef CC_BASE_THREAD_POOL_H_
#define CC_BASE_THREAD_POOL_H_

#include <cstdint>

#include "cc/base/function_ref.h"

namespace bd {

// body(task, thread): `thread` is in [0, num_threads()) and no two bodies of
// one ParallelFor run at the same time with the same `thread`, so it may index
// per-thread scratch.
using ParallelBody = FunctionRef<void(int64_t task, int thread)>;

class ThreadPool {
 public:
  // `num_threads` counts the caller: a pool of 1 starts no worker.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return num_threads_; }

  // Runs body for every task in [0, num_tasks); returns when all are done.
  // Tasks are handed out one at a time, in order, to whichever thread is free.
  // Safe from many callers at once: one takes the workers, the others (and
  // calls from inside a body) run their tasks inline as thread 0.
  void ParallelFor(int64_t num_tasks, ParallelBody body);

  // The process-wide pool of that size, created at first use, rebuilt after
  // fork, joined at exit.
  static ThreadPool& Shared(int num_threads);

 private:
  struct Impl;
  Impl* impl_;
  int num_threads_;
};

}  // namespace bd

#endif  // CC_BASE_THREAD_POOL_H_
