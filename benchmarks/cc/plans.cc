// What planning chooses, and how long it takes: every convolution of benchmarks/shapes, and every
// 1x1 with a depthwise one after it. It needs no cores, so it says so of any number of threads.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "benchmarks/cc/contestant.h"
#include "benchmarks/cc/shapes.h"
#include "cc/base/cpu/isa.h"
#include "cc/base/machine.h"
#include "cc/core/conv/conv_depthwise/conv_depthwise.h"

namespace bd::layers {
namespace {

constexpr char kUsage[] = R"(usage: plans [--choices] SHAPES...

Prints the machine, as TF_BLOCKDNN_MACHINE may name a file of it, and the longest that an op takes to plan, in microseconds of a core, for numbers of threads and
batches; exits with 1 where that is more than 500. With --choices it prints what is chosen instead,
a line a plan, so that two versions can be compared.
)";

constexpr int kThreads[] = {1, 2, 4, 8, 16, 32, 64, 128, 256};
constexpr int64_t kBatches[] = {1, 32, 256};
constexpr double kMostMicroseconds = 500;

double CoreMicroseconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

std::string Choice(const ConvPlan& plan) {
  std::string text = plan.algorithm_name();
  for (const auto& [name, value] : plan.blocking) text += " " + std::to_string(value);
  return text + " tasks " + std::to_string(plan.tasks);
}

std::string Choice(const ConvDepthwisePlan& plan) {
  if (!plan.fused) return plan.algorithm_name();
  std::string text = std::string("fused ") + std::to_string(plan.step_rows);
  for (const PairPart& p : plan.parts) {
    for (int64_t end : {p.group_end, p.row_end}) text += " " + std::to_string(end);
  }
  return text;
}

// A convolution, and the depthwise one after it, if there is one.
struct Op {
  Shape first, depthwise;
  bool pair = false;

  std::string ToString() const {
    return first.ToString() + (pair ? " and " + depthwise.ToString() : "");
  }

  // What is chosen; the least time of some plans is put into *microseconds.
  std::string Plan(int64_t batch, int threads, double* microseconds) const {
    constexpr int kRepeats = 3;
    Shape a = first, b = depthwise;
    a.n = b.n = batch;
    ConvDesc desc = DescOf(a, ConvAlgorithm::kAuto), behind = DescOf(b, ConvAlgorithm::kAuto);
    desc.keeps_weights = behind.keeps_weights = true;
    std::string choice;
    for (int i = 0; i < kRepeats; ++i) {
      ConvPlan plan;
      ConvDepthwisePlan plans;
      const double begin = CoreMicroseconds();
      const std::string error =
          pair ? MakeConvDepthwisePlan(desc, behind, ActiveIsa(), threads, &plans)
               : MakeConvPlan(desc, ActiveIsa(), threads, &plan);
      const double taken = CoreMicroseconds() - begin;
      if (!error.empty()) throw std::runtime_error(ToString() + ": " + error);
      *microseconds = i == 0 ? taken : std::min(*microseconds, taken);
      choice = pair ? Choice(plans) : Choice(plan);
    }
    return choice;
  }
};

// The distinct convolutions and pairs of all files.
std::vector<Op> ReadOps(const std::vector<std::string>& files) {
  std::map<std::string, Op> ops;
  for (const std::string& path : files) {
    const std::vector<Shape> network = ReadShapes(path);
    for (const Shape& first : network) {
      const Op alone = {first, first, false};
      ops.emplace(alone.ToString(), alone);
      if (first.kh * first.kw > 1 || first.groups > 1 || first.ic <= 3) continue;
      for (const Shape& behind : network) {
        const bool reads = behind.groups == first.oc && behind.oc == first.oc &&
                           behind.ih == first.oh() && behind.iw == first.ow();
        const Op pair = {first, behind, true};
        if (reads) ops.emplace(pair.ToString(), pair);
      }
    }
  }
  std::vector<Op> list;
  for (const auto& [name, op] : ops) list.push_back(op);
  return list;
}

bool Print(const std::vector<Op>& ops, bool choices) {
  double most = 0;
  if (!choices) {
    std::printf("%s%zu ops, %s; the most microseconds of a plan\nthreads",
                ThisMachine().ToString().c_str(), ops.size(), IsaName(ActiveIsa()));
    for (int64_t batch : kBatches) std::printf("  batch %3d", static_cast<int>(batch));
    std::printf("\n");
  }
  for (int threads : kThreads) {
    if (!choices) std::printf("%7d", threads);
    for (int64_t batch : kBatches) {
      double longest = 0;
      for (const Op& op : ops) {
        double taken = 0;
        const std::string choice = op.Plan(batch, threads, &taken);
        longest = std::max(longest, taken);
        if (!choices) continue;
        std::printf("%d threads, batch %d, %s: %s\n", threads, static_cast<int>(batch),
                    op.ToString().c_str(), choice.c_str());
      }
      if (!choices) std::printf("  %9.0f", longest);
      most = std::max(most, longest);
    }
    if (!choices) std::printf("\n");
  }
  return choices || most <= kMostMicroseconds;
}

}  // namespace
}  // namespace bd::layers

int main(int argc, char** argv) {
  const bool choices = argc > 1 && std::strcmp(argv[1], "--choices") == 0;
  const std::vector<std::string> files(argv + (choices ? 2 : 1), argv + argc);
  if (files.empty()) {
    std::fputs(bd::layers::kUsage, stderr);
    return 2;
  }
  try {
    return bd::layers::Print(bd::layers::ReadOps(files), choices) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "plans: %s\n", error.what());
    return 2;
  }
}
