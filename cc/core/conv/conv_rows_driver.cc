// Runs inner products of few rows: each task has a range of columns.
#include <algorithm>
#include <atomic>

#include "cc/core/conv/conv_rows.h"
#include "cc/core/conv/conv_rows_kernel.h"

namespace bd {
namespace {

// Columns of a task's groups.
int64_t FirstColumn(const ConvRun& run, int64_t group) {
  return run.plan.groups[group].first_block * kBlock;
}

int64_t LastColumn(const ConvRun& run, int64_t group) {
  const OutputGroup& g = run.plan.groups[group];
  return std::min(run.d.oc, (g.first_block + g.blocks) * kBlock);
}

void PlainTask(const ConvRun& run, const float* weights, bool skips_zeros, int64_t task,
               int thread) {
  const TaskRange r = Locate(run, task);
  const int64_t first = FirstColumn(run, r.group_begin);
  RowsArgs a;
  a.src = run.buffers.src;
  a.rows = r.end;
  a.ic = run.d.ic;
  a.skips_zeros = skips_zeros;
  a.weights = weights + first;
  a.weights_stride = run.d.oc;
  a.bias = run.bias == nullptr ? nullptr : run.bias + first;
  a.dst = run.Row(thread);
  a.count = LastColumn(run, r.group_end - 1) - first;
  RowsKernelsFor(run.plan.isa).multiply(a);
  StorePlain(run, r, nullptr, a.dst);
}

// Rows of weights that meet only zeros, as behind a ReLU, need not be read; looking for them costs
// a list of the others. Where a third and more may be skipped that pays (25088 x 4096, AVX2, 2
// threads: all 14.0 ms, 61 % of the rows 7.7, 20 % 2.6).
bool HasManyZeros(const ConvRun& run) {
  const int64_t met =
      RowsKernelsFor(run.plan.isa).count_met(run.buffers.src, run.plane(), run.d.ic);
  return 3 * met <= 2 * run.d.ic;
}

}  // namespace

void PackFiniteNote(const ConvPlan& plan, const float* hwio, float* packed, ThreadPool& pool) {
  const int64_t rows = plan.desc.ic, columns = plan.desc.oc;
  std::atomic<bool> finite(true);
  const int64_t tasks = std::clamp<int64_t>(rows * columns >> 18, 1, std::max<int64_t>(1, rows));
  pool.ParallelFor(tasks, [&](int64_t t, int) {
    // Of numbers times zero the sum is zero, of infinity or NaN it is NaN.
    const float* begin = hwio + rows * t / tasks * columns;
    const float* end = hwio + rows * (t + 1) / tasks * columns;
    float lanes[kBlock] = {};
    for (; end - begin >= kBlock; begin += kBlock) {
      for (int64_t i = 0; i < kBlock; ++i) lanes[i] += begin[i] * 0.f;
    }
    for (; begin < end; ++begin) lanes[0] += *begin * 0.f;
    for (float sum : lanes) {
      if (sum != 0.f) finite.store(false, std::memory_order_relaxed);
    }
  });
  std::fill(packed, packed + plan.packed_floats, 0.f);
  if (finite.load()) *packed = 1.f;
}

void RunRows(const ConvRun& run, ThreadPool& pool) {
  const bool finite =
      run.plan.packed_floats > 0 && run.buffers.packed != nullptr && *run.buffers.packed != 0.f;
  const bool skips_zeros = finite && HasManyZeros(run);
  pool.ParallelFor(run.plan.tasks, [&](int64_t t, int thread) {
    PlainTask(run, run.buffers.plain, skips_zeros, t, thread);
  });
}

}  // namespace bd
