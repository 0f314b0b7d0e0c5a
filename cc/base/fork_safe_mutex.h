// The mutex of this library: no other thread is inside while the process forks.
#pragma once

#include <mutex>

namespace bd {

// In a forked child a std::mutex that another thread held stays locked for good, and what it
// guards is half changed. fork() waits until nobody is in one of these, so hold it briefly, and
// only to look at or change what it guards. For std::lock_guard.
class ForkSafeMutex {
 public:
  ForkSafeMutex();
  ~ForkSafeMutex();
  ForkSafeMutex(const ForkSafeMutex&) = delete;
  ForkSafeMutex& operator=(const ForkSafeMutex&) = delete;

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  friend struct AllMutexes;
  std::mutex mutex_;
  ForkSafeMutex *next_ = nullptr, **link_ = nullptr;  // in the list of all; what leads here
};

}  // namespace bd
