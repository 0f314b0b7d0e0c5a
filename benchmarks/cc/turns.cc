#include "benchmarks/cc/turns.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>

namespace bd::layers {
namespace {

using Clock = std::chrono::steady_clock;

double MicrosecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// "tid (name) state ...", proc(5); a thread that has just ended reads as asleep.
bool IsRunning(const std::string& tid) {
  std::ifstream file("/proc/self/task/" + tid + "/stat");
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(')');
  return name_end != std::string::npos && name_end + 2 < line.size() && line[name_end + 2] == 'R';
}

bool OtherThreadsSleep() {
  const std::string self = std::to_string(gettid());
  const std::unique_ptr<DIR, int (*)(DIR*)> tasks(opendir("/proc/self/task"), closedir);
  if (tasks == nullptr) throw std::runtime_error("/proc/self/task: cannot be read");
  while (const dirent* task = readdir(tasks.get())) {
    if (task->d_name[0] != '.' && task->d_name != self && IsRunning(task->d_name)) return false;
  }
  return true;
}

// OpenMP's workers spin for some 3 ms by default.
void AwaitSleep() {
  constexpr int kStepUs = 500, kMostSteps = 2000;
  for (int step = 0; step < kMostSteps; ++step) {
    usleep(kStepUs);
    if (OtherThreadsSleep()) return;
  }
  throw std::runtime_error(
      "threads of this process never sleep: unset OMP_WAIT_POLICY and GOMP_SPINCOUNT");
}

void TakeTurn(Contestant& contestant, const TurnOptions& options, std::vector<double>* us) {
  AwaitSleep();
  const Clock::time_point warm_start = Clock::now();
  do {
    contestant.Run();
  } while (MicrosecondsSince(warm_start) < options.warm_us);
  const Clock::time_point turn_start = Clock::now();
  for (int calls = 0; calls < 2 || MicrosecondsSince(turn_start) < options.turn_us; ++calls) {
    const Clock::time_point start = Clock::now();
    contestant.Run();
    us->push_back(MicrosecondsSince(start));
  }
}

}  // namespace

std::vector<Timing> TakeTurns(const std::vector<Contestant*>& contestants,
                              const TurnOptions& options) {
  const size_t n = contestants.size();
  std::vector<Timing> timings(n);
  for (int round = 0; round < options.rounds; ++round) {
    for (size_t i = 0; i < n; ++i) {
      const size_t who = (i + round) % n;
      TakeTurn(*contestants[who], options, &timings[who].us);
    }
  }
  for (Timing& timing : timings) std::sort(timing.us.begin(), timing.us.end());
  return timings;
}

}  // namespace bd::layers
