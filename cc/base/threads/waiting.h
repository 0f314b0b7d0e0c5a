// How a thread waits for what others do: awake for a while, and then asleep.
//
// Busy machines. Who yields its core to a process that computes gets it back after a whole slice of
// the scheduler, 4 ms and more, whatever happens meanwhile; who sleeps is there soon after it is
// woken. So who found its core taken yields no more for a while, and sleeps instead. BERT took 1.7
// times as long beside two busy processes while callers and workers yielded, and 1.05 times as long
// alone where callers never did.
#pragma once

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace bd {

// A gap between two operations is 2 to 5 us, one between two calls of a network is 0.1 to
// 0.3 ms, and waking a sleeper takes 16 to 47 us. So threads spin over the first kind of
// gap, offer their core to whoever wants it during the second kind, and then sleep.
constexpr int64_t kSpinNanoseconds = 20000;
constexpr int64_t kYieldNanoseconds = 300000;
constexpr int kPausesPerClockRead = 32;
// A core that comes back later than that went to a process that computes, and not to one that woke
// for a moment; it will want the core for a while.
constexpr int64_t kTakenNanoseconds = 1000000;
constexpr int64_t kBusyNanoseconds = 1000000000;

inline int64_t NowNanoseconds() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1000000000 + t.tv_nsec;
}

inline void FutexWait(std::atomic<uint32_t>* word, uint32_t while_equal) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, while_equal, nullptr, nullptr, 0);
}

inline void FutexWake(std::atomic<uint32_t>* word, int count) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

// When others may leave this thread's core.
inline thread_local int64_t core_is_taken_until = 0;

// Waits awake until done(), so long at most; false if that was too short. Most waits end before the
// clock is read.
template <typename Done>
bool WaitAwake(const Done& done, int64_t most_nanoseconds = kYieldNanoseconds) {
  for (int64_t start = 0;;) {
    for (int i = 0; i < kPausesPerClockRead; ++i) {
      if (done()) return true;
      _mm_pause();
    }
    const int64_t now = NowNanoseconds();
    if (start == 0) start = now;
    const int64_t awake = now < core_is_taken_until ? kSpinNanoseconds : kYieldNanoseconds;
    if (now - start > std::min(awake, most_nanoseconds)) return false;
    if (now - start <= kSpinNanoseconds) continue;
    sched_yield();
    const int64_t back = NowNanoseconds();
    if (back - now > kTakenNanoseconds) core_is_taken_until = back + kBusyNanoseconds;
  }
}

// Those who sleep until something is done. A sleeper enters itself, and then looks once more; who
// does it, with a seq_cst write, then looks for sleepers: the later of the two sees the other.
class Sleepers {
 public:
  // done() reads with seq_cst.
  template <typename Done>
  void SleepUntil(const Done& done) {
    for (;;) {
      awaited_.store(1, std::memory_order_seq_cst);
      if (done()) return;
      FutexWait(&awaited_, 1);
    }
  }

  void Wake() {
    if (awaited_.load(std::memory_order_seq_cst) == 0) return;
    awaited_.store(0, std::memory_order_relaxed);
    FutexWake(&awaited_, INT_MAX);
  }

 private:
  std::atomic<uint32_t> awaited_{0};
};

}  // namespace bd
