// The pool's own sources, compiled so that its threads are fibers of one thread and its atomics say
// who touches them: as many threads as one likes, whose turns the includer decides. It defines, in
// namespace fibers, what happens when the current fiber reads or writes an atomic, and when it
// pauses; each may switch to another one. With `bd` defined as another name the sources are beside
// the library's, else in their place.
#pragma once

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace fibers {

void OnRead(const void* p);
void OnWrite(const void* p);
void OnPause();

// Below it lies a page that nobody may touch.
struct Stack {
  static constexpr size_t kBytes = 1 << 20, kPage = 4096;
  Stack()
      : bytes(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    mprotect(bytes, kPage, PROT_NONE);
  }
  ~Stack() { munmap(bytes, kBytes); }
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;
  void* const bytes;
};

struct Fiber {
  ucontext_t context;
  std::unique_ptr<Stack> stack;
  std::function<void()> body;
  bool done = false;
  bool in_body = false;  // the sources' thread_local, while it is another fiber's turn
};
inline std::vector<std::unique_ptr<Fiber>> all;  // fiber 0 is the caller
inline size_t current = 0;
inline bool* in_body = nullptr;

inline void Clear() {
  all.clear();
  all.push_back(std::make_unique<Fiber>());
  current = 0;
}

inline void SwitchTo(size_t to) {
  if (to == current) return;
  const size_t from = std::exchange(current, to);
  all[from]->in_body = std::exchange(*in_body, all[to]->in_body);
  swapcontext(&all[from]->context, &all[to]->context);
}

inline void Run() {
  Fiber& fiber = *all[current];
  fiber.body();
  fiber.done = true;
  for (;;) OnPause();
}

inline size_t Create(std::function<void()> body) {
  auto fiber = std::make_unique<Fiber>();
  fiber->stack = std::make_unique<Stack>();
  fiber->body = std::move(body);
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = fiber->stack->bytes;
  fiber->context.uc_stack.ss_size = Stack::kBytes;
  makecontext(&fiber->context, Run, 0);
  all.push_back(std::move(fiber));
  return all.size() - 1;
}

inline int CreateThread(pthread_t* thread, void* (*main)(void*), void* argument) {
  *thread = Create([=] { main(argument); });
  return 0;
}

inline void Join(size_t fiber) {
  while (!all[fiber]->done) OnPause();
}

}  // namespace fibers

namespace std {

template <typename T>
class counted_atomic {
 public:
  counted_atomic() = default;
  constexpr counted_atomic(T value) : value_(value) {}
  T load(memory_order = memory_order_seq_cst) const {
    fibers::OnRead(this);
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
    fibers::OnWrite(this);
    return value_;
  }
  T value_;
};

}  // namespace std

#define atomic counted_atomic
#define pthread_create(thread, attributes, main, argument) \
  fibers::CreateThread(thread, main, argument)
#define pthread_join(thread, result) fibers::Join(thread)
#define pthread_setname_np(thread, name)
#define clock_gettime(clock, time) (*(time) = {})
#define sched_yield() fibers::OnPause()
#define _mm_pause() fibers::OnPause()
#include "cc/base/threads/parallel_steps.cc"
#include "cc/base/threads/parallel_units.cc"
#include "cc/base/threads/thread_pool.cc"
#undef atomic
#undef pthread_create
#undef pthread_join
#undef clock_gettime
#undef sched_yield
#undef _mm_pause

namespace bd {
namespace {
const bool in_body_is_of_a_fiber = (fibers::in_body = &in_body) != nullptr;
}  // namespace
}  // namespace bd
