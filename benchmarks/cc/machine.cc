#include "benchmarks/cc/machine.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <numeric>
#include <vector>

#include "benchmarks/cc/peak_kernel.h"
#include "cc/base/machine.h"

namespace bd::layers {
namespace {

template <typename Fn>
double Seconds(Fn&& fn) {
  const auto start = std::chrono::steady_clock::now();
  fn();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double MeasurePeak(void (*run)(int64_t), int64_t operations, ThreadPool& pool) {
  constexpr int64_t kIterations = 1 << 19;  // about 1 ms
  constexpr int kRepeats = 30;
  std::vector<double> best(pool.num_threads(), 0);
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    pool.ParallelFor(pool.num_threads(), [&](int64_t task, int) {
      const double seconds = Seconds([&] { run(kIterations); });
      best[task] = std::max(best[task], kIterations * operations / seconds);
    });
  }
  return std::accumulate(best.begin(), best.end(), 0.0) / 1e9;
}

}  // namespace

Caches DetectCaches() {
  const int64_t l3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
  // If the system does not know the size, take that of a common server.
  return {ThisMachine().l2_bytes, l3 > 0 ? l3 : 32 << 20};
}

std::string CpuName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

double MeasureFmaPeak(Isa isa, ThreadPool& pool) {
  const PeakKernels& kernels = PeakKernelsFor(isa);
  return MeasurePeak(kernels.multiply_add, kernels.flops_per_iteration, pool);
}

double MeasureBf16Peak(Isa isa, ThreadPool& pool) {
  const PeakKernels& kernels = PeakKernelsFor(isa);
  return MeasurePeak(kernels.dot_pairs, kernels.pair_operations, pool);
}

double MeasureInt8Peak(Isa isa, ThreadPool& pool) {
  const PeakKernels& kernels = PeakKernelsFor(isa);
  return MeasurePeak(kernels.dot_quads, kernels.quad_operations, pool);
}

double MeasureReadBandwidth(Isa isa, ThreadPool& pool) {
  constexpr int64_t kTaskFloats = 1 << 18;
  constexpr int kRepeats = 6;
  const PeakKernels& kernels = PeakKernelsFor(isa);
  const int64_t tasks = std::max<int64_t>(DetectCaches().l3_bytes / kTaskFloats, 1);
  const Buffer buffer(tasks * kTaskFloats);
  std::vector<float> sums(tasks);
  double best = 0;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const double seconds = Seconds([&] {
      pool.ParallelFor(tasks, [&](int64_t task, int) {
        sums[task] = kernels.read(buffer.data() + task * kTaskFloats, kTaskFloats);
      });
    });
    best = std::max(best, 4.0 * tasks * kTaskFloats / seconds);
  }
  return best / 1e9;
}

}  // namespace bd::layers
