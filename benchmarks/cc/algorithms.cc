// How far the algorithm that a convolution chooses is after the best one: each row of the table
// that applies, turn by turn, on the shapes of benchmarks/shapes.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "benchmarks/cc/contestant.h"
#include "benchmarks/cc/machine.h"
#include "benchmarks/cc/shapes.h"
#include "benchmarks/cc/turns.h"
#include "cc/core/conv/common/cost.h"
#include "cc/core/conv/conv.h"

namespace bd::layers {
namespace {

constexpr char kUsage[] = R"(usage: algorithms THREADS BATCH SHAPES...

Prints, of each distinct convolution of the shape files for which there is a choice, the algorithm
that is chosen, and of each that applies microseconds (the least of all turns) and the cycles that
it is estimated to take, in thousands; at the end the geometric mean of the times of the chosen, by
those of the best, and the worst. Exits with 1 where the first is more than 1.05, or the second 1.2.
)";

// How far the chosen may be after the best.
constexpr double kMostMean = 1.05, kMostOfOne = 1.2;

struct Candidate {
  const Algorithm* row;
  double cycles;
  std::unique_ptr<Contestant> contestant;
};

// Those that take at most thrice the estimate of the least: others would only take time.
std::vector<Candidate> CandidatesFor(const Problem& problem, Isa isa, ThreadPool& pool) {
  constexpr double kMost = 3;
  const ConvDesc desc = DescOf(problem.shape, ConvAlgorithm::kAuto);
  const int threads = pool.num_threads();
  std::vector<Candidate> all;
  double least = INFINITY;
  for (const Algorithm& row : ConvAlgorithms()) {
    if (!WhyNot(row, desc, isa).empty()) continue;
    all.push_back({&row, CyclesOf(row.cost(row, desc, isa, threads), threads), nullptr});
    least = std::min(least, all.back().cycles);
  }
  std::vector<Candidate> candidates;
  for (Candidate& one : all) {
    if (one.cycles <= kMost * least) candidates.push_back(std::move(one));
  }
  for (Candidate& one : candidates) {
    if (candidates.size() == 1) break;
    one.contestant = MakeOurs(problem, isa, ConvAlgorithm::kAuto, pool, one.row);
  }
  return candidates;
}

// The time of the chosen, by that of the best; 0 where there is no choice.
double Measure(const Shape& shape, const Footprint& footprint, Isa isa, ThreadPool& pool) {
  const Problem problem = MakeProblem(shape, footprint);
  const std::vector<Candidate> candidates = CandidatesFor(problem, isa, pool);
  if (candidates.size() < 2) return 0;
  std::vector<Contestant*> turns;
  size_t chosen = 0, best = 0;
  for (const Candidate& one : candidates) {
    if (one.cycles < candidates[chosen].cycles) chosen = turns.size();
    turns.push_back(one.contestant.get());
  }
  TurnOptions options;
  options.rounds = 3;
  options.turn_us = 3000;
  options.warm_us = 3000;
  const std::vector<Timing> timings = TakeTurns(turns, options);
  for (size_t i = 0; i < timings.size(); ++i) {
    if (timings[i].min() < timings[best].min()) best = i;
  }
  const double ratio = timings[chosen].min() / timings[best].min();
  std::printf("%5.2f  %-34s %-12s", ratio, shape.ToString().c_str(), candidates[chosen].row->name);
  for (size_t i = 0; i < timings.size(); ++i) {
    std::printf("  %s %.0f us %.0f", candidates[i].row->name, timings[i].min(),
                candidates[i].cycles / 1e3);
  }
  std::printf("\n");
  std::fflush(stdout);
  return ratio;
}

// Whether the chosen are as fast as they should be.
bool MeasureFiles(int threads, int64_t batch, const std::vector<std::string>& files) {
  ThreadPool pool(threads);
  const Isa isa = ActiveIsa();
  std::set<std::string> seen;
  double logarithms = 0, worst = 0;
  int count = 0;
  for (const std::string& path : files) {
    const std::vector<Shape> network = ReadShapes(path);
    const Footprint footprint = FootprintOf("network", network, threads);
    for (Shape shape : network) {
      shape.n = batch;
      if (!seen.insert(shape.ToString()).second) continue;
      const double ratio = Measure(shape, footprint, isa, pool);
      if (ratio == 0) continue;
      logarithms += std::log(ratio);
      worst = std::max(worst, ratio);
      ++count;
    }
  }
  const double mean = std::exp(logarithms / std::max(1, count));
  std::printf("%s, %s, %d threads, batch %d: of %d convolutions geometric mean %.3f, worst %.2f\n",
              CpuName().c_str(), IsaName(isa), threads, static_cast<int>(batch), count, mean,
              worst);
  return mean <= kMostMean && worst <= kMostOfOne;
}

}  // namespace
}  // namespace bd::layers

int main(int argc, char** argv) {
  const int threads = argc > 3 ? std::atoi(argv[1]) : 0, batch = argc > 3 ? std::atoi(argv[2]) : 0;
  if (threads < 1 || batch < 1) {
    std::fputs(bd::layers::kUsage, stderr);
    return 2;
  }
  try {
    return bd::layers::MeasureFiles(threads, batch, {argv + 3, argv + argc}) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "algorithms: %s\n", error.what());
    return 2;
  }
}
