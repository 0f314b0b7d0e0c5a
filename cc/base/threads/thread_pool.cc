// The protocol, in the order a job meets it.
//
//   caller                                     worker
//   ------                                     ------
//   leases a team, or runs everything inline
//   of each group: body, regions
//   remaining = its threads    -- publish -->  waits until remaining > 0,
//   sleepers > 0 ? hand out permits ------->   or sleeps for a permit
//   RunShares                                  RunShares
//   of each group:
//   expected += n - own shares
//   finished == expected       <-- report ---  finished += own shares
//   or asleep                  <-- wake -----  does it sleep?
//   Unlock
//
// Teams. A team is a lock and the workers that whoever holds it commands. A caller alone has one of
// all threads. One that finds every team taken runs its job inline, and the calls that follow lease
// the smaller and more teams of the next row of PlanTeams, so that callers then have equal parts of
// the threads; who sees that the teams of the row before would do, goes back to it. Teams of every
// row have workers of their own, which start with the first job and sleep while another row is in
// use: a team is never changed, only another one is leased, and a job that began in a team of all
// threads ends in it. Which row is in use is a hint that no result depends on: a lease is the
// team's own lock.
//
// Groups. Eight threads (task_regions.h) share what follows; a pool of eight is one group. So the
// caller writes and reads a line or two a group, and no line is fought for by more threads.
//
// Taking a share, of which a group has one a thread. `remaining` counts down.
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
// more; a caller first publishes `remaining`, then looks at `sleepers`, which both change for it
// (by nothing): the later of the two has all that the other did before, so no wake-up is lost.
// Wakers move sleepers to `permits` before the system call:
// sleepers + permits is the number of threads asleep or on their way, and nobody
// pays for waking a thread twice. A woken worker wakes the next ones, two each,
// so the caller's own cost does not grow with the pool. How a caller sleeps is in waiting.h.
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
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "cc/base/cpu_limit.h"
#include "cc/base/threads/pool_size.h"
#include "cc/base/threads/task_regions.h"
#include "cc/base/threads/waiting.h"

namespace bd {
namespace {

// Two lines: the adjacent-line prefetcher moves them in pairs.
constexpr size_t kNoFalseSharing = 128;

constexpr int64_t kWakesPerThread = 2;

std::atomic<uint64_t> process_generation{1};
const int fork_handler = pthread_atfork(
    nullptr, nullptr, [] { process_generation.fetch_add(1, std::memory_order_relaxed); });

// Flush-to-zero and rounding mode, without the sticky exception flags.
void AdoptFloatControl(unsigned mxcsr) {
  constexpr unsigned kFlags = 0x3f;
  if ((_mm_getcsr() ^ mxcsr) & ~kFlags) _mm_setcsr(mxcsr);
}

constexpr auto kNoBody = [](int64_t, int) {};

// Of a pool of several teams: whether this thread runs tasks, and what it calls is nested.
thread_local bool in_body = false;

// Of its team, between two looks of a caller at whether fewer teams would do. A network has
// some 60.
constexpr uint32_t kRunsPerLook = 64;

}  // namespace

// One lease of threads: a caller and its workers.
struct ThreadPool::Team {
  // `all` threads there are in teams of this size.
  Team(int workers, int all)
      : all_threads(all),
        max_workers(workers),
        threads(new pthread_t[workers]),
        region_list(new TaskRegion[workers + 1]),
        neighbours(NeighboursOf(workers + 1)),
        num_groups((workers + neighbours) / neighbours),
        groups(new Group[num_groups]),
        task_groups(new TaskGroup[1 + num_groups]) {}

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
    if (++job_number > TaskRegions::kLastJob) {
      for (int i = 0; i <= max_workers; ++i)
        region_list[i].left.store(0, std::memory_order_relaxed);
      for (int i = 0; i <= num_groups; ++i) task_groups[i].busy.store(0, std::memory_order_relaxed);
      job_number = 1;
    }
    const TaskRegions regions(region_list.get(), task_groups.get(), job_number, n, num_tasks);
    const unsigned mxcsr = _mm_getcsr();
    const int64_t called = (n + neighbours - 1) / neighbours;
    const auto shares_of = [&](int64_t g) { return std::min(neighbours, n - g * neighbours); };
    for (int64_t g = 0; g < called; ++g) {
      Group& group = groups[g];
      group.regions = regions;
      group.body = job;
      group.mxcsr = mxcsr;
      group.remaining.store(shares_of(g), std::memory_order_release);
    }
    for (int64_t g = 0, wakes = kWakesPerThread; g < called; ++g) {
      const int32_t asleep = groups[g].sleepers.fetch_add(0, std::memory_order_acq_rel);
      if (asleep == 0) continue;
      const int64_t others = shares_of(g) - (g == 0 ? 1 : 0);
      wakes -= groups[g].Wake(std::min(wakes, others - (groups[g].workers - asleep)));
    }

    const int64_t own = RunShares(0);
    for (int64_t g = 0; g < called; ++g) {
      Group& group = groups[g];
      group.expected += shares_of(g) - (g == 0 ? own : 0);
      const auto is_finished = [&] {
        return group.finished.load(std::memory_order_seq_cst) == group.expected;
      };
      if (is_finished()) continue;
      if (g > 0) group.expected -= group.TakeShares();
      if (!WaitAwake(is_finished, awake_nanoseconds)) group.caller.SleepUntil(is_finished);
    }
  }

  // Called with the lock held, or by the last user of the pool.
  void JoinWorkers() {
    for (int64_t g = 0; g < num_groups; ++g) {
      groups[g].stop.store(true, std::memory_order_seq_cst);
      groups[g].permits.fetch_add(static_cast<uint32_t>(neighbours), std::memory_order_seq_cst);
      FutexWake(&groups[g].permits, INT_MAX);
    }
    for (int i = 0; i < num_workers; ++i) pthread_join(threads[i], nullptr);
    num_workers = 0;
  }

  // Runs of this team, and those of all teams of its row when its caller last looked. The count
  // is written by who holds the lock and read by others now and then; the list is of the holder.
  std::atomic<uint32_t> runs{0};
  std::vector<uint32_t> runs_seen;

 private:
  // What neighbours share. The job: one line tells a spinning worker everything, and has what
  // falling asleep and waking up take, too.
  struct alignas(kNoFalseSharing) Group {
    std::atomic<int64_t> remaining{0};
    TaskRegions regions;
    ParallelBody body = kNoBody;
    unsigned mxcsr = 0;
    std::atomic<bool> stop{false};
    std::atomic<int32_t> sleepers{0};
    std::atomic<uint32_t> permits{0};

    // Shares that workers took and have finished since they were started; `expected` is the
    // caller's.
    alignas(kNoFalseSharing) std::atomic<int64_t> finished{0};
    Sleepers caller;
    alignas(kNoFalseSharing) int64_t expected = 0;
    int workers = 0;

    bool HasTasksOrStops(std::memory_order order) const {
      return remaining.load(order) > 0 || stop.load(order);
    }

    // Shares of threads that have not come; returns how many.
    int64_t TakeShares() {
      int64_t taken = 0;
      while (remaining.load(std::memory_order_relaxed) > 0 &&
             remaining.fetch_sub(1, std::memory_order_relaxed) > 0) {
        ++taken;
      }
      return taken;
    }

    void Report(int64_t shares) {
      finished.fetch_add(shares, std::memory_order_seq_cst);
      caller.Wake();
    }

    void Sleep() {
      sleepers.fetch_add(1, std::memory_order_seq_cst);
      if (HasTasksOrStops(std::memory_order_seq_cst)) {
        // Step back, unless a waker has already turned the place into a permit.
        int32_t seen = sleepers.load(std::memory_order_relaxed);
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

    // Wakes so many, if as many sleep; returns how many.
    int64_t Wake(int64_t wanted) {
      int32_t seen = sleepers.load(std::memory_order_relaxed);
      for (;;) {
        const int32_t wakes = static_cast<int32_t>(std::min<int64_t>(seen, wanted));
        if (wakes <= 0) return 0;
        if (sleepers.compare_exchange_weak(seen, seen - wakes, std::memory_order_relaxed)) {
          permits.fetch_add(static_cast<uint32_t>(wakes), std::memory_order_release);
          FutexWake(&permits, wakes);
          return wakes;
        }
      }
    }
  };

  struct WorkerStart {
    Team* team;
    int thread;
  };

  // A thread that cannot be created is one worker fewer, not an error.
  void StartWorkers() {
    for (int64_t g = 0; g < num_groups; ++g) {
      groups[g].remaining.store(0, std::memory_order_relaxed);
      groups[g].finished.store(groups[g].expected = 0, std::memory_order_relaxed);
      groups[g].sleepers.store(0, std::memory_order_relaxed);
      groups[g].permits.store(0, std::memory_order_relaxed);
      groups[g].workers = 0;
    }
    // Spinning takes the core from whoever has the work when threads share it.
    awake_nanoseconds = all_threads <= AvailableCpus() ? kYieldNanoseconds : 0;

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
      ++GroupOf(num_workers + 1).workers;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  static void* WorkerMain(void* argument) {
    const std::unique_ptr<WorkerStart> start(static_cast<WorkerStart*>(argument));
    pthread_setname_np(pthread_self(), "tf_blockdnn");
    in_body = true;
    start->team->Work(start->thread);
    return nullptr;
  }

  Group& GroupOf(int thread) const { return groups[thread / neighbours]; }

  void Work(int thread) {
    Group& group = GroupOf(thread);
    for (;;) {
      const auto comes = [&] { return group.HasTasksOrStops(std::memory_order_relaxed); };
      const bool woken = !WaitAwake(comes, awake_nanoseconds);
      if (woken) group.Sleep();
      if (group.stop.load(std::memory_order_relaxed)) return;
      if (woken) WakeMore(thread / neighbours);
      const int64_t own = RunShares(thread);
      if (own > 0) group.Report(own);
    }
  }

  // Runs tasks until none is left; returns how many shares that were.
  int64_t RunShares(int thread) {
    Group& group = GroupOf(thread);
    if (group.remaining.fetch_sub(1, std::memory_order_acquire) <= 0) return 0;
    AdoptFloatControl(group.mxcsr);
    for (int64_t task; group.regions.Take(thread, &task);) group.body(task, thread);
    return 1 + group.TakeShares();
  }

  // Of a woken thread: at most kWakesPerThread others, who wake the rest, for shares of its own
  // group but one, and then of the next ones.
  void WakeMore(int64_t own) {
    for (int64_t i = 0, wakes = kWakesPerThread; i < num_groups && wakes > 0; ++i) {
      Group& group = groups[(own + i) % num_groups];
      const int64_t shares = group.remaining.load(std::memory_order_relaxed) - (i == 0 ? 1 : 0);
      wakes -= group.Wake(std::min(wakes, shares));
    }
  }

  alignas(kNoFalseSharing) std::atomic<uint64_t> lock{0};
  uint32_t job_number = 0;

  alignas(kNoFalseSharing) const int all_threads, max_workers;
  int num_workers = 0;
  int64_t awake_nanoseconds = 0;
  const std::unique_ptr<pthread_t[]> threads;
  const std::unique_ptr<TaskRegion[]> region_list;
  const int64_t neighbours, num_groups;
  const std::unique_ptr<Group[]> groups;
  const std::unique_ptr<TaskGroup[]> task_groups;
};

struct ThreadPool::Impl {
  Impl(int threads, int callers) {
    for (const Teams& planned : PlanTeams(threads, callers, CoresOfL3())) {
      rows.push_back({static_cast<int>(teams.size()), planned.count, planned.threads});
      for (int i = 0; i < planned.count; ++i) {
        teams.push_back(
            std::make_unique<Team>(planned.threads - 1, planned.count * planned.threads));
        teams.back()->runs_seen.resize(planned.count);
      }
    }
    if (teams.size() == 1) only = teams[0].get();
  }

  Team* Lease() {
    if (only != nullptr) return only->TryLock() ? only : nullptr;
    return in_body ? nullptr : LeaseOne();
  }

  void Return(Team* team) {
    if (only == nullptr) in_body = false;
    team->Unlock();
  }

  // The pools of Shared() by size, never freed. A plain array and no mutex: one
  // held by another thread during a fork would hang the child.
  static std::atomic<ThreadPool*> shared[];
  static const struct JoinAtExit { ~JoinAtExit(); } join_at_exit;

  struct Row {
    int first, count, threads;
  };
  std::vector<Row> rows;
  std::atomic<int> row{0};
  std::vector<std::unique_ptr<Team>> teams;  // of all rows
  Team* only = nullptr;                      // where there is one

 private:
  Team& TeamOf(const Row& r, unsigned i) const { return *teams[r.first + i % r.count]; }

  // The team that this thread had last, if it is free: its workers have what the thread's tasks
  // left in their caches.
  Team* LeaseOne() {
    static std::atomic<unsigned> next{0};
    thread_local unsigned mine = next.fetch_add(1, std::memory_order_relaxed);
    int seen = row.load(std::memory_order_relaxed);
    for (int i = 0; i < rows[seen].count; ++i) {
      Team& team = TeamOf(rows[seen], mine + i);
      if (!team.TryLock()) continue;
      mine += i;
      in_body = true;
      const uint32_t runs = team.runs.load(std::memory_order_relaxed) + 1;
      team.runs.store(runs, std::memory_order_relaxed);
      if (seen > 0 && runs % kRunsPerLook == 0 && FewerWouldDo(seen, &team)) {
        row.compare_exchange_strong(seen, seen - 1, std::memory_order_relaxed);
      }
      return &team;
    }
    if (seen + 1 < static_cast<int>(rows.size())) {
      row.compare_exchange_strong(seen, seen + 1, std::memory_order_relaxed);
    }
    return nullptr;
  }

  // Whether no more teams ran anything, since the holder of `team` looked last, than there are in
  // the row before.
  bool FewerWouldDo(int r, Team* team) const {
    int busy = 0;
    for (int i = 0; i < rows[r].count; ++i) {
      const uint32_t runs = TeamOf(rows[r], i).runs.load(std::memory_order_relaxed);
      busy += runs != team->runs_seen[i];
      team->runs_seen[i] = runs;
    }
    return busy <= rows[r - 1].count;
  }
};

ThreadPool::ThreadPool(int num_threads, int callers)
    : impl_(new Impl(std::max(num_threads, 1), std::max(callers, 1))),
      num_threads_(std::max(num_threads, 1)) {}

ThreadPool::~ThreadPool() {
  for (const auto& team : impl_->teams) {
    if (team->HasWorkers()) team->JoinWorkers();
  }
  delete impl_;
}

int ThreadPool::team_threads() const {
  const auto& rows = impl_->rows;
  return rows.empty() ? 1 : rows[impl_->row.load(std::memory_order_relaxed)].threads;
}

void ThreadPool::ParallelFor(int64_t num_tasks, ParallelBody body) {
  const bool shares = num_tasks > 1 && num_threads_ > 1 && num_tasks <= TaskRegions::kMostTasks;
  if (Team* const team = shares ? impl_->Lease() : nullptr) {
    team->Run(num_tasks, body);
    impl_->Return(team);
    return;
  }
  for (int64_t task = 0; task < num_tasks; ++task) body(task, 0);
}

std::atomic<ThreadPool*> ThreadPool::Impl::shared[kMostPoolThreads + 1];
const ThreadPool::Impl::JoinAtExit ThreadPool::Impl::join_at_exit;

ThreadPool::Impl::JoinAtExit::~JoinAtExit() {
  for (std::atomic<ThreadPool*>& slot : shared) {
    ThreadPool* pool = slot.load(std::memory_order_acquire);
    if (pool == nullptr) continue;
    for (const auto& team : pool->impl_->teams) {
      // A job in flight gets 0.2 s; one that called exit() itself never ends.
      for (int tries = 0; team->HasWorkers() && tries < 200; ++tries) {
        if (team->TryLock()) {
          team->JoinWorkers();
          break;
        }
        usleep(1000);
      }
    }
  }
}

ThreadPool& ThreadPool::Shared(int num_threads) {
  num_threads = std::clamp(num_threads, 1, kMostPoolThreads);
  std::atomic<ThreadPool*>& slot = Impl::shared[num_threads];
  ThreadPool* pool = slot.load(std::memory_order_acquire);
  if (pool == nullptr) {
    auto created = std::make_unique<ThreadPool>(num_threads, PoolCallers());
    if (slot.compare_exchange_strong(pool, created.get(), std::memory_order_acq_rel)) {
      pool = created.release();
    }
  }
  return *pool;
}

}  // namespace bd
