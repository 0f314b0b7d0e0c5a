// ParallelFor for tasks that are made of units, where threads end together: who finds no
// task left takes units from the end of what others are at.
//
//   ParallelUnits(pool, tasks, [&](UnitTaker& taker) {
//     for (int64_t task; taker.NextTask(&task);) {
//       ...                                              // what all units need
//       taker.Publish(units, payload);
//       for (Units u; taker.Next(0.5, 1, &u);) ...         // units [u.begin, u.end) of task
//     }
//     for (Units u; taker.Steal(0.5, 1, &u);) ...          // of u.task, u.payload with them
//   });
//
// CPUs are not equally fast: on a shared machine a neighbour takes half of one core's pipes and
// leaves the other alone, for minutes. Of two equal halves the faster thread then waits, 13 to
// 28 % of all of a network's calls. Smaller tasks for all cost each thread what it has in its
// caches and asks for ahead (MobileNetV2 and EfficientNetB0 4 to 7 % in quiet minutes); a thread
// that goes through units of its own in order, until others are done, keeps that.
#pragma once

#include <cstdint>

#include "cc/base/function_ref.h"
#include "cc/base/threads/thread_pool.h"

namespace bd {

struct Units {
  int64_t task, begin, end;
  int payload;  // what the task's owner published with them
};

// A thread's view of one ParallelUnits.
class UnitTaker {
 public:
  struct Shared;
  UnitTaker(Shared* shared, int thread);

  // In [0, num_threads()); as ParallelFor's.
  int thread() const { return thread_; }

  // A task that nobody has begun, the thread's own ones first; false when there is none.
  bool NextTask(int64_t* task);

  // What the task consists of, for others to steal from; replaces what was published before.
  void Publish(int64_t units, int payload = 0);

  // The first of the units left of this thread's task, a fraction of them but at least
  // `least` > 0 if there are so many; false when none is left.
  bool Next(double fraction, int64_t least, Units* units);

  // The last of what is left of another thread's task, likewise; false when there is none.
  bool Steal(double fraction, int64_t least, Units* units);

 private:
  Shared* const shared_;
  const int thread_;
  Units own_ = {};  // where others may not take: begin to end
  bool published_ = false;
};

// Calls body once on each thread that takes part; together these take all of `tasks` tasks.
// Otherwise as ThreadPool::ParallelFor.
void ParallelUnits(ThreadPool& pool, int64_t tasks, FunctionRef<void(UnitTaker&)> body);

}  // namespace bd
