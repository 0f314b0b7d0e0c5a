// The protocol, in the order a job meets it.
//
//   caller                                     worker
//   ------                                     ------
//   TryLock, or run everything inline
//   body, regions
//   remaining = n              -- publish -->  waits until remaining > 0,
//   sleepers > 0 ? hand out permits ------->   or sleeps for a permit
//   RunShares                                  RunShares
//   expected += n - own shares
//   finished == expected       <-- report ---  finished += own shares
//   Unlock
//
// Taking a share, of which a job has one a thread. `remaining` counts down.
// Whoever turns r > 0 into r - 1 owns a share and runs tasks until none is left;
// whoever finds r <= 0 owns nothing and touches nothing else. So a worker that
// arrives late, or sleeps through a whole job, is harmless: the caller waits for
// shares that were taken, never for threads. body and regions are read only by
// owners of a share of that job, and the job cannot end before they report;
// hence the next job may overwrite them, and no epoch is needed: a decrement
// that slips into the next job takes a share of that job.
//
// Ordering. The publishing store of `remaining` releases the job; each taking
// decrement acquires it (decrements of others continue the release sequence).
// `finished` releases the results; the caller's wait acquires them.
//
// Sleeping. A worker first enters `sleepers`, then looks at `remaining` once
// more; a caller first publishes `remaining`, then looks at `sleepers`. All four
// are sequentially consistent, so at least one of the two sees the other and no
// wake-up is lost. Wakers move sleepers to `permits` before the system call:
// sleepers + permits is the number of threads asleep or on their way, and nobody
// pays for waking a thread twice. A woken worker wakes the next ones, two each,
// so the caller's own cost does not grow with the pool.
//
// Forks. The lock word is 2 * generation + held, where the generation counts the
// forks of this process. A word of an older generation (or the initial 0) says
// that this process has no workers: taking it starts them. Fork from outside a
// body only.
//
// Exit. The pools of Shared() are never freed. At exit their lock is taken for
// good, so later callers run inline, and the workers are joined.
#include "cc/base/threads/thread_pool.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <algorithm>
#include <atomic>
#include <memory>

#include "cc/base/cpu_limit.h"
#include "cc/base/threads/pool_size.h"
#include "cc/base/threads/task_regions.h"

namespace bd {
namespace {

// Two lines: the adjacent-line prefetcher moves them in pairs.
constexpr size_t kNoFalseSharing = 128;

// A gap between two operations is 2 to 5 us, one between two calls of a network is 0.1 to
// 0.3 ms, and waking a sleeper takes 16 to 47 us. So workers spin over the first kind of
// gap, offer their core to whoever wants it during the second kind, and then sleep.
constexpr int64_t kSpinNanoseconds = 20000;
constexpr int64_t kYieldNanoseconds = 300000;
constexpr int kPausesPerClockRead = 32;
constexpr int kPausesBeforeYield = 200;
constexpr int64_t kWakesPerThread = 2;

std::atomic<uint64_t> process_generation{1};
const int fork_handler = pthread_atfork(
    nullptr, nullptr, [] { process_generation.fetch_add(1, std::memory_order_relaxed); });

int64_t NowNanoseconds() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1000000000 + t.tv_nsec;
}

void FutexWait(std::atomic<uint32_t>* word, uint32_t while_equal) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, while_equal, nullptr, nullptr, 0);
}

void FutexWake(std::atomic<uint32_t>* word, int count) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

// Flush-to-zero and rounding mode, without the sticky exception flags.
void AdoptFloatControl(unsigned mxcsr) {
  constexpr unsigned kFlags = 0x3f;
  if ((_mm_getcsr() ^ mxcsr) & ~kFlags) _mm_setcsr(mxcsr);
}

constexpr auto kNoBody = [](int64_t, int) {};

}  // namespace

struct ThreadPool::Impl {
  explicit Impl(int workers)
      : max_workers(workers),
        threads(new pthread_t[workers]),
        region_list(new TaskRegion[workers + 1]) {}

  // Takes the workers for one caller; starts them if this process has none.
  bool TryLock() {
    const uint64_t free = 2 * process_generation.load(std::memory_order_relaxed);
    uint64_t seen = lock.load(std::memory_order_relaxed);
    if (seen == free + 1) return false;
    if (!lock.compare_exchange_strong(seen, free + 1, std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
      return false;
    }
    if (seen != free) StartWorkers();
    return true;
  }

  void Unlock() { lock.store(lock.load(std::memory_order_relaxed) - 1, std::memory_order_release); }

  // True if the workers belong to this process (not to one it was forked from).
  bool HasWorkers() const {
    return lock.load(std::memory_order_acquire) / 2 ==
           process_generation.load(std::memory_order_relaxed);
  }

  // Called with the lock held.
  void Run(int64_t num_tasks, ParallelBody job) {
    const int64_t n = std::min<int64_t>(num_tasks, max_workers + 1);
    body = job;
    regions = TaskRegions(region_list.get(), n, num_tasks);
    mxcsr = _mm_getcsr();
    remaining.store(n, std::memory_order_seq_cst);
    const int64_t asleep = sleepers.load(std::memory_order_seq_cst);
    const int64_t awake = num_workers - asleep;
    if (asleep > 0) WakeSleepers(n - 1 - awake);

    expected += n - RunShares(0);
    for (int pauses = 0; finished.load(std::memory_order_acquire) != expected;) {
      if (pauses < kPausesBeforeYield) {
        ++pauses;
        _mm_pause();
      } else {
        sched_yield();
      }
    }
  }

  // Called with the lock held, or by the last user of the pool.
  void JoinWorkers() {
    stop.store(true, std::memory_order_seq_cst);
    permits.fetch_add(num_workers, std::memory_order_seq_cst);
    FutexWake(&permits, INT_MAX);
    for (int i = 0; i < num_workers; ++i) pthread_join(threads[i], nullptr);
    num_workers = 0;
  }

  // The pools of Shared() by size, never freed. A plain array and no mutex: one
  // held by another thread during a fork would hang the child.
  static std::atomic<ThreadPool*> shared[];
  static const struct JoinAtExit { ~JoinAtExit(); } join_at_exit;

 private:
  struct WorkerStart {
    Impl* pool;
    int thread;
  };

  // A thread that cannot be created is one worker fewer, not an error.
  void StartWorkers() {
    remaining.store(0, std::memory_order_relaxed);
    finished.store(expected = 0, std::memory_order_relaxed);
    sleepers.store(0, std::memory_order_relaxed);
    permits.store(0, std::memory_order_relaxed);
    // Spinning takes the core from whoever has the work when threads share it.
    awake_nanoseconds = max_workers < AvailableCpus() ? kYieldNanoseconds : 0;

    // Signals are for the application's threads; faults stay where they happen.
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) {
      sigdelset(&blocked, fault);
    }
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    for (num_workers = 0; num_workers < max_workers; ++num_workers) {
      auto start = std::make_unique<WorkerStart>(WorkerStart{this, num_workers + 1});
      if (pthread_create(&threads[num_workers], nullptr, WorkerMain, start.get()) != 0) break;
      start.release();
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  static void* WorkerMain(void* argument) {
    const std::unique_ptr<WorkerStart> start(static_cast<WorkerStart*>(argument));
    pthread_setname_np(pthread_self(), "tf_blockdnn");
    start->pool->Work(start->thread);
    return nullptr;
  }

  void Work(int thread) {
    for (;;) {
      const bool woken = !AwaitTasks();
      if (woken) Sleep();
      if (stop.load(std::memory_order_relaxed)) return;
      if (woken) WakeSleepers(remaining.load(std::memory_order_relaxed) - 1);
      const int64_t own = RunShares(thread);
      if (own > 0) finished.fetch_add(own, std::memory_order_release);
    }
  }

  // Runs tasks until none is left; returns how many shares that were.
  int64_t RunShares(int thread) {
    if (remaining.fetch_sub(1, std::memory_order_acquire) <= 0) return 0;
    AdoptFloatControl(mxcsr);
    for (int64_t task; regions.Take(thread, &task);) body(task, thread);
    int64_t own = 1;
    // Those of threads that have not come.
    while (remaining.load(std::memory_order_relaxed) > 0 &&
           remaining.fetch_sub(1, std::memory_order_relaxed) > 0) {
      ++own;
    }
    return own;
  }

  bool HasTasksOrStops(std::memory_order order) const {
    return remaining.load(order) > 0 || stop.load(order);
  }

  // Waits awake; false if nothing came.
  bool AwaitTasks() const {
    const int64_t start = NowNanoseconds();
    for (int64_t waited = 0; waited <= awake_nanoseconds; waited = NowNanoseconds() - start) {
      if (waited > kSpinNanoseconds) sched_yield();
      for (int i = 0; i < kPausesPerClockRead; ++i) {
        if (HasTasksOrStops(std::memory_order_relaxed)) return true;
        _mm_pause();
      }
    }
    return false;
  }

  void Sleep() {
    sleepers.fetch_add(1, std::memory_order_seq_cst);
    if (HasTasksOrStops(std::memory_order_seq_cst)) {
      // Step back, unless a waker has already turned the place into a permit.
      int64_t seen = sleepers.load(std::memory_order_relaxed);
      while (seen > 0) {
        if (sleepers.compare_exchange_weak(seen, seen - 1, std::memory_order_relaxed)) return;
      }
    }
    for (;;) {
      uint32_t seen = permits.load(std::memory_order_relaxed);
      while (seen > 0) {
        if (permits.compare_exchange_weak(seen, seen - 1, std::memory_order_acquire)) return;
      }
      FutexWait(&permits, 0);
    }
  }

  // Wakes `wanted` sleepers, but at most kWakesPerThread: they wake the rest.
  void WakeSleepers(int64_t wanted) {
    int64_t seen = sleepers.load(std::memory_order_relaxed);
    for (;;) {
      const int64_t wakes = std::min({seen, wanted, kWakesPerThread});
      if (wakes <= 0) return;
      if (sleepers.compare_exchange_weak(seen, seen - wakes, std::memory_order_relaxed)) {
        permits.fetch_add(static_cast<uint32_t>(wakes), std::memory_order_release);
        FutexWake(&permits, static_cast<int>(wakes));
        return;
      }
    }
  }

  // The job: one line tells a spinning worker everything.
  alignas(kNoFalseSharing) std::atomic<int64_t> remaining{0};
  TaskRegions regions;
  ParallelBody body = kNoBody;
  unsigned mxcsr = 0;
  std::atomic<bool> stop{false};

  // Tasks run by workers since they were started; `expected` is the caller's.
  alignas(kNoFalseSharing) std::atomic<int64_t> finished{0};

  alignas(kNoFalseSharing) std::atomic<int64_t> sleepers{0};
  std::atomic<uint32_t> permits{0};

  alignas(kNoFalseSharing) std::atomic<uint64_t> lock{0};
  int64_t expected = 0;

  alignas(kNoFalseSharing) const int max_workers;
  int num_workers = 0;
  int64_t awake_nanoseconds = 0;
  const std::unique_ptr<pthread_t[]> threads;
  const std::unique_ptr<TaskRegion[]> region_list;
};

ThreadPool::ThreadPool(int num_threads)
    : impl_(new Impl(std::max(num_threads, 1) - 1)), num_threads_(std::max(num_threads, 1)) {}

ThreadPool::~ThreadPool() {
  if (impl_->HasWorkers()) impl_->JoinWorkers();
  delete impl_;
}

void ThreadPool::ParallelFor(int64_t num_tasks, ParallelBody body) {
  const bool shares = num_tasks > 1 && num_threads_ > 1 && num_tasks <= TaskRegions::kMostTasks;
  if (shares && impl_->TryLock()) {
    impl_->Run(num_tasks, body);
    impl_->Unlock();
    return;
  }
  for (int64_t task = 0; task < num_tasks; ++task) body(task, 0);
}

std::atomic<ThreadPool*> ThreadPool::Impl::shared[kMostPoolThreads + 1];
const ThreadPool::Impl::JoinAtExit ThreadPool::Impl::join_at_exit;

ThreadPool::Impl::JoinAtExit::~JoinAtExit() {
  for (std::atomic<ThreadPool*>& slot : shared) {
    ThreadPool* pool = slot.load(std::memory_order_acquire);
    if (pool == nullptr || !pool->impl_->HasWorkers()) continue;
    // A job in flight gets 0.2 s; one that called exit() itself never ends.
    for (int tries = 0; tries < 200; ++tries) {
      if (pool->impl_->TryLock()) {
        pool->impl_->JoinWorkers();
        break;
      }
      usleep(1000);
    }
  }
}

ThreadPool& ThreadPool::Shared(int num_threads) {
  num_threads = std::clamp(num_threads, 1, kMostPoolThreads);
  std::atomic<ThreadPool*>& slot = Impl::shared[num_threads];
  ThreadPool* pool = slot.load(std::memory_order_acquire);
  if (pool == nullptr) {
    auto created = std::make_unique<ThreadPool>(num_threads);
    if (slot.compare_exchange_strong(pool, created.get(), std::memory_order_acq_rel)) {
      pool = created.release();
    }
  }
  return *pool;
}

}  // namespace bd
