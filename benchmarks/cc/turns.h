// Measures contestants turn by turn in one process.
#pragma once

#include <vector>

#include "benchmarks/cc/contestant.h"

namespace bd::layers {

struct Timing {
  std::vector<double> us;  // of each call, ascending
  double min() const { return us.front(); }
  double median() const { return us[us.size() / 2]; }
};

// The contestants take turns of `turn_us` of timed calls, at least two calls, and start in
// changing order. The threads of each go on spinning after a call and would take a core from the
// other. So a turn begins once all threads of the process but this one sleep, and its first
// `warm_us` are not counted. Both times exceed the 3 to 4 ms that a scheduler takes to give a woken
// thread a core that it shares with another process.
struct TurnOptions {
  int rounds = 10;
  double turn_us = 8000;
  double warm_us = 4000;
};

// Throws std::runtime_error if threads do not go to sleep.
std::vector<Timing> TakeTurns(const std::vector<Contestant*>& contestants,
                              const TurnOptions& options);

}  // namespace bd::layers
