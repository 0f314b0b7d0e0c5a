#include "cc/base/fork_safe_mutex.h"

#include <pthread.h>
#include <sched.h>

namespace bd {

struct AllMutexes {
  std::mutex lock;
  ForkSafeMutex* first = nullptr;

  static AllMutexes& Get() {
    static AllMutexes* const all = [] {
      pthread_atfork([] { Get().LockAll(); }, [] { Get().UnlockUntil(nullptr); },
                     [] { Get().UnlockUntil(nullptr); });
      return new AllMutexes;  // outlives every mutex
    }();
    return *all;
  }

  // A thread may take one of them, or make one, while it holds another. So whoever wants all of
  // them must not wait with some in hand: he gives them back and tries again.
  void LockAll() {
    while (!TryLockAll()) sched_yield();
  }

  bool TryLockAll() {
    lock.lock();
    for (ForkSafeMutex* m = first; m != nullptr; m = m->next_) {
      if (m->mutex_.try_lock()) continue;
      UnlockUntil(m);
      return false;
    }
    return true;
  }

  void UnlockUntil(const ForkSafeMutex* end) {
    for (ForkSafeMutex* m = first; m != end; m = m->next_) m->mutex_.unlock();
    lock.unlock();
  }
};

ForkSafeMutex::ForkSafeMutex() {
  AllMutexes& all = AllMutexes::Get();
  std::lock_guard<std::mutex> guard(all.lock);
  next_ = all.first;
  link_ = &all.first;
  if (next_ != nullptr) next_->link_ = &next_;
  all.first = this;
}

ForkSafeMutex::~ForkSafeMutex() {
  std::lock_guard<std::mutex> guard(AllMutexes::Get().lock);
  *link_ = next_;
  if (next_ != nullptr) next_->link_ = link_;
}

}  // namespace bd
