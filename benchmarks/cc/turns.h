// Contestants measured turn by turn in one process.
#ifndef BENCHMARKS_CC_TURNS_H_
#define BENCHMARKS_CC_TURNS_H_

#include <vector>

#include "benchmarks/cc/contestant.h"

namespace bd::layers {

struct Timing {
  std::vector<double> us;  // of each call, ascending
  double min() const { return us.front(); }
  double median() const { return us[us.size() / 2]; }
};

// The contestants take turns of `turn_us` of timed calls (two at least), and
// start in changing order. Each keeps threads that go on spinning after a call,
// which would take a core from the other: so a turn begins once all threads of
// the process but this one sleep, and its first `warm_us` are not counted. Both
// times exceed what a scheduler takes to give a woken thread a core that is
// shared with another process, 3 to 4 ms.
struct TurnOptions {
  int rounds = 10;
  double turn_us = 8000;
  double warm_us = 4000;
};

// Throws std::runtime_error where threads do not go to sleep.
std::vector<Timing> TakeTurns(const std::vector<Contestant*>& contestants,
                              const TurnOptions& options);

}  // namespace bd::layers

#endif  // BENCHMARKS_CC_TURNS_H_
