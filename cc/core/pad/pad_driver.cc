#include <algorithm>

#include "cc/core/pad/pad.h"

namespace bd {

void RunPad(const PadPlan& plan, const float* src, float* dst, ThreadPool& pool) {
  constexpr int64_t kBlock = 16;
  const PadDesc& d = plan.desc;
  const int64_t rows = d.planes * d.dst_height(), width = d.dst_width();
  pool.ParallelFor(plan.tasks, [&](int64_t task, int) {
    const int64_t end = std::min(rows, (task + 1) * plan.rows_per_task);
    for (int64_t row = task * plan.rows_per_task; row < end; ++row) {
      float* to = dst + row * width * kBlock;
      const int64_t y = row % d.dst_height() - d.top;
      if (y < 0 || y >= d.height) {
        std::fill_n(to, width * kBlock, 0.f);
        continue;
      }
      const int64_t at = (row / d.dst_height() * d.height + y) * d.width + plan.first;
      to = std::fill_n(to, plan.zeros_before * kBlock, 0.f);
      if (plan.copied > 0) to = std::copy_n(src + at * kBlock, plan.copied * kBlock, to);
      std::fill_n(to, (width - plan.zeros_before - plan.copied) * kBlock, 0.f);
    }
  });
}

}  // namespace bd
