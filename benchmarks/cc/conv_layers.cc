// Runs each convolution of a shape file with our kernels and with oneDNN's, turn by turn. In a
// network, a layer's weights were last read one inference ago, and its activations come from other
// layers; the memory policies of kUsage imitate that.
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "benchmarks/cc/contestant.h"
#include "benchmarks/cc/machine.h"
#include "benchmarks/cc/report.h"
#include "benchmarks/cc/shapes.h"
#include "benchmarks/cc/turns.h"

namespace bd::layers {
namespace {

// The error of both algorithms stays far below; that of a wrong result is of order 1.
constexpr double kLargestDifference = 1e-3;

constexpr char kUsage[] = R"(usage: conv_layers [options] SHAPES...

Measures each convolution of the shape files, with bias and ReLU, on our kernels
and on oneDNN's, turn by turn in this process on as many threads.

  --threads N      default: the cores this process may use
  --isa ISA        generic, avx2 or avx512: the best that both may use
  --batch N        instead of the file's n
  --algorithm A    ours: auto, direct, winograd or paired (direct where they cannot
                   be), auto_small or auto_smallest
  --filter TEXT    only layers whose name or shape contains it
  --memory POLICY  how soon calls come back to the same memory:
                   network  weights after as many bytes as the whole network's
                            weights, or twice the L3 cache where that is less;
                            activations after as many as all L2 caches hold
                   cold     both after twice the L3 cache
                   hot      at once
  --rounds N       turns of each, default 10
  --json           an object a line instead of a table
)";

struct Options {
  int threads = 1;
  Isa isa = ActiveIsa();
  int64_t batch = 0;
  std::string algorithm = "auto", filter, memory = "network";
  TurnOptions turns;
  bool json = false;
  std::vector<std::string> files;
};

int UsableCores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

int Positive(const std::string& option, const std::string& text) {
  char* end = nullptr;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  if (end == text.c_str() || *end != '\0' || value < 1 || value > (1 << 20)) {
    throw std::runtime_error(option + " takes a positive number, not '" + text + "'");
  }
  return static_cast<int>(value);
}

// The position of `text` among `names`.
int OneOf(const std::string& option, const std::string& text, std::vector<std::string> names) {
  const auto found = std::find(names.begin(), names.end(), text);
  if (found != names.end()) return static_cast<int>(found - names.begin());
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  throw std::runtime_error(option + " takes one of " + all + ", not '" + text + "'");
}

Isa ParseIsa(const std::string& text) {
  std::vector<std::string> names;
  for (int i = 0; i < kNumIsas; ++i) names.push_back(IsaName(static_cast<Isa>(i)));
  const Isa isa = static_cast<Isa>(OneOf("--isa", text, names));
  if (!RunsHere(isa)) throw std::runtime_error("--isa " + text + ": this machine lacks it");
  return isa;
}

ConvAlgorithm ParseAlgorithm(const std::string& text) {
  constexpr ConvAlgorithm kAlgorithms[] = {ConvAlgorithm::kAuto,      ConvAlgorithm::kDirect,
                                           ConvAlgorithm::kWinograd,  ConvAlgorithm::kFip,
                                           ConvAlgorithm::kAutoSmall, ConvAlgorithm::kAutoSmallest};
  return kAlgorithms[OneOf(
      "--algorithm", text,
      {"auto", "direct", "winograd", "paired", "auto_small", "auto_smallest"})];
}

Options ParseOptions(int argc, char** argv) {
  Options o;
  o.threads = UsableCores();
  const std::map<std::string, std::function<void(const std::string&, const std::string&)>> setters =
      {
          {"--threads", [&](auto& name, auto& text) { o.threads = Positive(name, text); }},
          {"--isa", [&](auto&, auto& text) { o.isa = ParseIsa(text); }},
          {"--batch", [&](auto& name, auto& text) { o.batch = Positive(name, text); }},
          {"--algorithm", [&](auto&, auto& text) { ParseAlgorithm(o.algorithm = text); }},
          {"--filter", [&](auto&, auto& text) { o.filter = text; }},
          {"--memory",
           [&](auto& name, auto& text) {
             OneOf(name, o.memory = text, {"network", "cold", "hot"});
           }},
          {"--rounds", [&](auto& name, auto& text) { o.turns.rounds = Positive(name, text); }},
      };
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto setter = setters.find(argument);
    if (argument == "--json") {
      o.json = true;
    } else if (argument.rfind("--", 0) != 0) {
      o.files.push_back(argument);
    } else if (setter == setters.end()) {
      throw std::runtime_error("there is no option " + argument + "; see --help");
    } else if (++i == argc) {
      throw std::runtime_error(argument + " needs a value");
    } else {
      setter->second(argument, argv[i]);
    }
  }
  if (o.files.empty()) throw std::runtime_error("no shape file given; see --help");
  return o;
}

LayerResult Measure(const Shape& shape, const Footprint& footprint, const Options& o,
                    ThreadPool& pool) {
  const Problem problem = MakeProblem(shape, footprint);
  const auto ours = MakeOurs(problem, o.isa, ParseAlgorithm(o.algorithm), pool);
  const auto onednn = MakeOnednn(problem);
  ours->Run();
  onednn->Run();

  LayerResult result;
  result.shape = shape;
  result.difference = LargestDifference(ours->Result(), onednn->Result());
  if (!(result.difference <= kLargestDifference)) {
    throw std::runtime_error(shape.name + " (" + shape.ToString() + "): " + ours->algorithm() +
                             " and oneDNN differ by " + std::to_string(result.difference));
  }
  const std::vector<Timing> timings = TakeTurns({ours.get(), onednn.get()}, o.turns);
  result.ours = {ours->algorithm(), timings[0]};
  result.onednn = {onednn->algorithm(), timings[1]};
  return result;
}

std::vector<Shape> Selected(const std::vector<Shape>& network, const Options& o) {
  std::vector<Shape> selected;
  for (Shape shape : network) {
    if (o.batch > 0) shape.n = o.batch;
    const bool wanted = (shape.name + " " + shape.ToString()).find(o.filter) != std::string::npos;
    if (wanted) selected.push_back(shape);
  }
  return selected;
}

void MeasureFiles(const Options& o) {
  RunInfo info;
  info.onednn_version = SetUpOnednn(o.isa, o.threads);
  info.cpu = CpuName(), info.isa = IsaName(o.isa), info.threads = o.threads;
  info.memory = o.memory, info.algorithm = o.algorithm;
  ThreadPool pool(o.threads);
  bool any = false;
  for (const std::string& path : o.files) {
    const std::vector<Shape> network = ReadShapes(path), selected = Selected(network, o);
    if (selected.empty()) continue;
    any = true;
    const Footprint footprint = FootprintOf(o.memory, network, o.threads);
    info.shapes = path;
    info.fma_peak = MeasureFmaPeak(o.isa, pool);
    info.read_bandwidth = MeasureReadBandwidth(o.isa, pool);
    Report report(info, o.json);
    for (const Shape& shape : selected) report.Add(Measure(shape, footprint, o, pool));
    report.End();
  }
  if (!any) throw std::runtime_error("no layer's name or shape contains '" + o.filter + "'");
}

}  // namespace
}  // namespace bd::layers

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "--help") {
    std::fputs(bd::layers::kUsage, stdout);
    return 0;
  }
  try {
    bd::layers::MeasureFiles(bd::layers::ParseOptions(argc, argv));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "conv_layers: %s\n", error.what());
    return 2;
  }
}
