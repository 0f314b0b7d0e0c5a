#include <algorithm>
#include <cstring>

#include "cc/core/resize/resize.h"

namespace bd {
namespace {

constexpr int64_t kBlock = 16;

void Rows(const ResizePlan& plan, const float* src, float* dst, int64_t begin, int64_t end) {
  const TensorView &from = plan.desc.src, &to = plan.desc.dst;
  const ResizeKernels& kernels = *plan.kernels;
  const auto run = plan.desc.kind == ResizeKind::kBilinear ? kernels.bilinear
                   : plan.factor > 0                       ? kernels.repeat
                                                           : kernels.nearest;
  ResizeRow row;
  row.columns = plan.columns.data();
  row.out = to.w();
  row.factor = plan.factor;
  int64_t before = -1;  // the source row of the unit before, where that may be copied
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t plane = unit / to.h(), y = unit % to.h();
    const int64_t n = plane / to.blocks(), block = plane % to.blocks();
    const ResizeTap& tap = plan.rows[y];
    const float* base = src + from.offset(n, block, 0);
    row.dst = dst + to.offset(n, block, y * to.w());
    row.lower = base + tap.lower;
    row.upper = base + tap.upper;
    row.fraction = tap.fraction;
    const bool same =
        plan.desc.kind == ResizeKind::kNearest && unit > begin && y > 0 && before == tap.lower;
    if (same) {
      std::memcpy(row.dst, row.dst - to.w() * kBlock, to.w() * kBlock * sizeof(float));
    } else {
      run(row);
    }
    before = tap.lower;
  }
}

}  // namespace

void RunResize(const ResizePlan& plan, const float* src, float* dst, ThreadPool& pool) {
  pool.ParallelFor(plan.tasks, [&](int64_t task, int) {
    const int64_t begin = task * plan.units_per_task;
    Rows(plan, src, dst, begin, std::min(plan.units, begin + plan.units_per_task));
  });
}

}  // namespace bd
