// Measures reorders and a copy of as many bytes, call by call in turn.
//
//   build_tools/bazel run -c opt //benchmarks/cc:reorders [-- THREADS]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/cc/machine.h"
#include "cc/core/reorder/reorder.h"

namespace bd::layers {
namespace {

struct Pair {
  Layout src, dst;
  DataType src_type, dst_type;
};

constexpr DataType kF32 = DataType::f32, kBf16 = DataType::bf16, kS8 = DataType::s8;
constexpr Pair kPairs[] = {
    {Layout::nhwc, Layout::nChw16c, kF32, kF32},   {Layout::nChw16c, Layout::nhwc, kF32, kF32},
    {Layout::nchw, Layout::nChw16c, kF32, kF32},   {Layout::nChw16c, Layout::nchw, kF32, kF32},
    {Layout::nhwc, Layout::nChw8c, kF32, kF32},    {Layout::nChw8c, Layout::nhwc, kF32, kF32},
    {Layout::nhwc, Layout::nchw, kF32, kF32},      {Layout::nchw, Layout::nhwc, kF32, kF32},
    {Layout::nhwc, Layout::nChw16c, kBf16, kBf16}, {Layout::nhwc, Layout::nhwc, kF32, kBf16},
    {Layout::nhwc, Layout::nhwc, kF32, kS8},       {Layout::nhwc, Layout::nhwc, kS8, kF32},
};

template <typename Run>
double Microseconds(Run&& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
      .count();
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

void Copy(const void* src, void* dst, int64_t bytes, int64_t task_bytes, ThreadPool& pool) {
  pool.ParallelFor((bytes + task_bytes - 1) / task_bytes, [&](int64_t task, int) {
    const int64_t first = task * task_bytes;
    std::memcpy(static_cast<char*>(dst) + first, static_cast<const char*>(src) + first,
                std::min(task_bytes, bytes - first));
  });
}

void Measure(const Dims& dims, const Pair& pair, ThreadPool& pool) {
  constexpr double kBudgetUs = 300e3;
  const ReorderDesc desc = {TensorDesc(dims, pair.src_type, pair.src),
                            TensorDesc(dims, pair.dst_type, pair.dst),
                            {},
                            0,
                            0};
  ReorderPlan plan;
  const std::string error = MakeReorderPlan(desc, ActiveIsa(), &plan);
  if (!error.empty()) {
    fprintf(stderr, "%s\n", error.c_str());
    exit(1);
  }
  // A copy that reads and writes as many bytes in all as the reorder does.
  const int64_t bytes = (desc.src.size_bytes() + desc.dst.size_bytes()) / 2;
  const int64_t floats = std::max(desc.src.size_bytes(), desc.dst.size_bytes()) / 4 + 1;
  const Buffer src(floats), dst(floats);
  // memcpy streams past the caches if a piece is large, so both sizes are tried, and the faster
  // counts.
  const int64_t tasks[] = {256 << 10, (bytes + pool.num_threads() - 1) / pool.num_threads()};
  std::vector<double> copies[2], reorders;
  for (double spent = 0; spent < kBudgetUs; spent += reorders.back()) {
    for (int way = 0; way < 2; ++way) {
      copies[way].push_back(
          Microseconds([&] { Copy(src.data(), dst.data(), bytes, tasks[way], pool); }));
      spent += copies[way].back();
    }
    reorders.push_back(Microseconds([&] { RunReorder(plan, src.data(), dst.data(), pool); }));
  }
  const double copy = std::min(Median(copies[0]), Median(copies[1])), reorder = Median(reorders);
  printf("%-34s %-18s %8.3f ms %8.1f GB/s   %3.0f %% of a copy\n", desc.src.ToString().c_str(),
         (std::string(DataTypeName(pair.dst_type)) + " " + LayoutName(pair.dst)).c_str(),
         reorder / 1e3, 2e-3 * bytes / reorder, 100 * copy / reorder);
}

}  // namespace
}  // namespace bd::layers

int main(int argc, char** argv) {
  const int threads =
      argc > 1 ? atoi(argv[1]) : static_cast<int>(std::thread::hardware_concurrency());
  bd::ThreadPool pool(threads);
  for (const bd::Dims& dims : {bd::Dims{1, 256, 56, 56}, bd::Dims{8, 256, 56, 56}}) {
    for (const auto& pair : bd::layers::kPairs) bd::layers::Measure(dims, pair, pool);
  }
  return 0;
}
