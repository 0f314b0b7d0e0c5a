#include <algorithm>
#include <cstring>

#include "cc/core/reorder/float_slice.h"
#include "cc/core/resize/resize.h"

namespace bd {
namespace {

constexpr int64_t kBlock = 16;

void Rows(const ResizePlan& plan, FloatRows memory, int64_t begin, int64_t end) {
  const TensorView &from = plan.desc.src, &to = plan.desc.dst;
  const ResizeKernels& kernels = *plan.kernels;
  const auto run = plan.desc.kind == ResizeKind::kBilinear ? kernels.bilinear
                   : plan.factor > 0                       ? kernels.repeat
                                                           : kernels.nearest;
  ResizeRow row;
  row.columns = plan.columns.data();
  row.out = to.w();
  row.factor = plan.factor;
  const int64_t row_floats = from.w() * kBlock, dst_bytes = to.w() * kBlock * SizeOf(to.dtype());
  int64_t before = -1;  // the source row of the unit before, where that may be copied
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t plane = unit / to.h(), y = unit % to.h();
    const int64_t n = plane / to.blocks(), block = plane % to.blocks();
    const ResizeTap& tap = plan.rows[y];
    const int64_t first = to.offset(n, block, y * to.w());
    row.fraction = tap.fraction;
    const bool same =
        plan.desc.kind == ResizeKind::kNearest && unit > begin && y > 0 && before == tap.lower;
    if (same) {
      char* const copy = memory.dst_bytes(first);
      std::memcpy(copy, copy - dst_bytes, dst_bytes);
    } else {
      int64_t step;
      const int64_t rows = tap.upper == tap.lower ? 1 : 2;
      row.dst = memory.Dst(first, to.w() * kBlock);
      row.lower = memory.Src(from.offset(n, block, 0) + tap.lower, rows, tap.upper - tap.lower,
                             row_floats, &step);
      row.upper = row.lower + (rows - 1) * step;
      run(row);
      memory.Store();
    }
    before = tap.lower;
  }
}

}  // namespace

void RunResize(const ResizePlan& plan, const void* src, void* dst, ThreadPool& pool) {
  pool.ParallelFor(plan.tasks, [&](int64_t task, int) {
    const int64_t begin = task * plan.units_per_task;
    const ResizeDesc& d = plan.desc;
    Rows(plan, FloatRows(plan.isa, d.src_type(), src, d.dst_type(), dst), begin,
         std::min(plan.units, begin + plan.units_per_task));
  });
}

}  // namespace bd
