// Runs inner products of few rows: each task has a range of columns.
#include <algorithm>
#include <cmath>

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

void CompressedTask(const ConvRun& run, int64_t task, int thread) {
  const TaskRange r = Locate(run, task);
  const int64_t first = FirstColumn(run, r.group_begin);
  float* const dst = run.Row(thread);
  for (int64_t g = r.group_begin; g < r.group_end; ++g) {
    const LeftOutRange left_out = LeftOutOf(run.plan, run.buffers.packed, g);
    CompressedRowsArgs a;
    a.src = run.buffers.src;
    a.rows = r.end;
    a.ic = run.d.ic;
    a.group = run.buffers.packed + run.plan.groups[g].weights_offset;
    a.panels = static_cast<int>(run.plan.groups[g].blocks);
    a.left_out = left_out.first;
    a.left_out_count = left_out.count;
    a.first_column = FirstColumn(run, g);
    a.bias = run.bias == nullptr ? nullptr : run.bias + a.first_column;
    a.dst = dst + a.first_column - first;
    a.dst_stride = LastColumn(run, r.group_end - 1) - first;
    a.count = LastColumn(run, g) - a.first_column;
    CompressedRowsKernelsFor(run.plan.isa).multiply(a);
  }
  StorePlain(run, r, nullptr, dst);
}

// Whether weights left out may be added later: infinity times the zero that stands
// for one of them is not a number.
bool MayLeaveOut(const ConvRun& run) {
  const int64_t groups = static_cast<int64_t>(run.plan.groups.size());
  bool none = true;
  for (int64_t g = 0; g < groups; ++g)
    none &= LeftOutOf(run.plan, run.buffers.packed, g).count == 0;
  return none || std::all_of(run.buffers.src, run.buffers.src + run.plane() * run.d.ic,
                             [](float x) { return std::isfinite(x); });
}

// Rows of weights that meet only zeros, as behind a ReLU, need not be read, but compressed ones lie
// 8 rows to a block: where a third and more may be skipped, plain weights are faster (25088 x 4096,
// AVX2, 2 threads: compressed 12.0 ms; plain, 61 % of the rows, 7.7; 20 %, 2.6).
bool HasManyZeros(const ConvRun& run) {
  const int64_t met =
      RowsKernelsFor(run.plan.isa).count_met(run.buffers.src, run.plane(), run.d.ic);
  return 3 * met <= 2 * run.d.ic;
}

}  // namespace

void RunRows(const ConvRun& run, ThreadPool& pool) {
  const bool may_compress = run.plan.packing.form == ConvForm::kCompressedRows;
  const bool compressed = may_compress && run.buffers.packed != nullptr;  // all weights are finite
  const bool skips_zeros = compressed && HasManyZeros(run);
  if (compressed && !skips_zeros && MayLeaveOut(run)) {
    return pool.ParallelFor(run.plan.tasks,
                            [&](int64_t t, int thread) { CompressedTask(run, t, thread); });
  }
  const float* weights = may_compress ? run.buffers.plain : run.buffers.packed;
  pool.ParallelFor(run.plan.tasks,
                   [&](int64_t t, int thread) { PlainTask(run, weights, skips_zeros, t, thread); });
}

}  // namespace bd
