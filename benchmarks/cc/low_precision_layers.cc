// Convolutions of float32, of bfloat16 and of bytes, turn by turn: microseconds, and the share of
// the peak that this machine's multiply-adds of the type reach in registers.
//
//   low_precision_layers [threads [part of the names of layers]]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "benchmarks/cc/contestant.h"
#include "benchmarks/cc/machine.h"
#include "benchmarks/cc/turns.h"
#include "cc/core/conv/conv.h"

namespace bd::layers {
namespace {

struct Layer {
  const char* name;
  int64_t channels, size, outputs, kernel, groups;
};

constexpr Layer kLayers[] = {
    {"3x3 256 > 256 at 14x14", 256, 14, 256, 3, 1},
    {"3x3 256 > 256 at 28x28", 256, 28, 256, 3, 1},
    {"3x3 64 > 64 at 56x56", 64, 56, 64, 3, 1},
    {"1x1 256 > 1024 at 14x14", 256, 14, 1024, 1, 1},
    {"1x1 1024 > 256 at 14x14", 1024, 14, 256, 1, 1},
    {"1x1 64 > 256 at 56x56", 64, 56, 256, 1, 1},
    {"1x1 16 > 96 at 112x112", 16, 112, 96, 1, 1},
    {"1x1 24 > 144 at 56x56", 24, 56, 144, 1, 1},
    {"1x1 144 > 24 at 56x56", 144, 56, 24, 1, 1},
    {"1x1 96 > 576 at 14x14", 96, 14, 576, 1, 1},
    {"1x1 576 > 96 at 14x14", 576, 14, 96, 1, 1},
    {"1x1 160 > 960 at 7x7", 160, 7, 960, 1, 1},
    {"1x1 960 > 160 at 7x7", 960, 7, 160, 1, 1},
    {"depthwise 3x3 32 at 112x112", 32, 112, 32, 3, 32},
    {"depthwise 5x5 480 at 14x14", 480, 14, 480, 5, 480},
    {"depthwise 3x3 960 at 7x7", 960, 7, 960, 3, 960},
    {"depthwise 3x3 256 at 28x28", 256, 28, 256, 3, 256},
    {"depthwise 3x3 144 at 56x56", 144, 56, 144, 3, 144},
};

struct Type {
  const char* name;
  DataType dtype, weights;
};

constexpr Type kTypes[] = {{"float32", DataType::f32, DataType::f32},
                           {"bfloat16", DataType::bf16, DataType::bf16},
                           {"int8", DataType::u8, DataType::s8}};

// With bias and ReLU, from and to blocked tensors of one type; all numbers are zero.
class LowPrecision : public Contestant {
 public:
  LowPrecision(const Layer& l, const Type& type, Isa isa, ThreadPool& pool)
      : pool_(pool),
        plan_(MakePlan(l, type, isa, pool.num_threads())),
        src_(Dwords(plan_.desc.src.bytes())),
        dst_(Dwords(plan_.desc.dst.bytes())),
        packed_(Dwords(plan_.packed_bytes)),
        scratch_(Dwords(plan_.scratch.bytes())),
        channels_(2 * l.outputs) {
    const int64_t weights =
        l.kernel * l.kernel * (l.channels / l.groups) * l.outputs * SizeOf(type.weights);
    PackConvWeights(plan_, Buffer(Dwords(weights)).data(), packed_.data(), pool);
    // Scales as networks have them: sums of thousands become a byte.
    std::fill_n(channels_.data() + l.outputs, l.outputs, 1e-3f);
  }

  std::string algorithm() const override { return plan_.algorithm_name(); }
  std::vector<float> Result() const override { return {}; }
  void Run() override {
    const float* args[] = {channels_.data()};
    ConvBuffers buffers;
    buffers.src = src_.data();
    buffers.packed = packed_.data();
    buffers.args = args;
    buffers.dst = dst_.data();
    buffers.scratch = scratch_.data();
    buffers.weight_scales = channels_.data() + plan_.desc.oc();
    RunConv(plan_, buffers, pool_);
  }

 private:
  static int64_t Dwords(int64_t bytes) { return bytes / 4 + 1; }
  static ConvPlan MakePlan(const Layer& l, const Type& type, Isa isa, int threads) {
    ConvDesc d;
    d.src = TensorView(type.dtype, Layout::nChw16c, {1, l.channels, l.size, l.size});
    d.dst = TensorView(type.dtype, Layout::nChw16c, {1, l.outputs, l.size, l.size});
    d.windows.h = d.windows.w = {l.size, l.kernel, 1, 1, l.kernel / 2, 0, l.size};
    d.groups = l.groups;
    d.types.weights = type.weights;
    d.keeps_weights = true;
    std::string error;
    ConvPlan plan;
    if (PostOpChain::Parse("binary(add,channel,#0);eltwise(relu)", &d.post_ops, &error)) {
      error = MakeConvPlan(d, isa, threads, &plan);
    }
    if (!error.empty()) throw std::runtime_error(error);
    return plan;
  }

  ThreadPool& pool_;
  const ConvPlan plan_;
  const Buffer src_, dst_, packed_, scratch_, channels_;
};

void Measure(int threads, const char* part) {
  const Isa isa = ActiveIsa();
  ThreadPool pool(threads);
  const double peaks[] = {MeasureFmaPeak(isa, pool), MeasureBf16Peak(isa, pool),
                          MeasureInt8Peak(isa, pool)};
  std::printf("%s, %s, %d threads; peaks %.0f, %.0f and %.0f GOP/s\n", CpuName().c_str(),
              IsaName(isa), threads, peaks[0], peaks[1], peaks[2]);
  std::printf("%-27s %-9s %-12s %9s %9s %8s %6s\n", "layer", "type", "algorithm", "min us",
              "median", "GOP/s", "peak");
  for (const Layer& l : kLayers) {
    if (std::strstr(l.name, part) == nullptr) continue;
    std::vector<std::unique_ptr<Contestant>> contestants;
    std::vector<Contestant*> turns;
    for (const Type& type : kTypes) {
      contestants.push_back(std::make_unique<LowPrecision>(l, type, isa, pool));
      turns.push_back(contestants.back().get());
    }
    TurnOptions options;
    options.rounds = 6;
    const std::vector<Timing> timings = TakeTurns(turns, options);
    const double operations =
        2.0 * l.size * l.size * l.kernel * l.kernel * (l.channels / l.groups) * l.outputs;
    for (size_t i = 0; i < timings.size(); ++i) {
      const double rate = operations / timings[i].median() / 1e3;
      std::printf("%-27s %-9s %-12s %9.1f %9.1f %8.0f %5.0f%%\n", l.name, kTypes[i].name,
                  contestants[i]->algorithm().c_str(), timings[i].min(), timings[i].median(), rate,
                  100 * rate / peaks[i]);
    }
  }
}

}  // namespace
}  // namespace bd::layers

int main(int argc, char** argv) {
  try {
    bd::layers::Measure(argc > 1 ? std::max(1, std::atoi(argv[1])) : 2, argc > 2 ? argv[2] : "");
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "low_precision_layers: %s\n", error.what());
    return 2;
  }
}
