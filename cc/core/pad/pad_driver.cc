#include <algorithm>
#include <cstring>

#include "cc/core/pad/pad.h"

namespace bd {

void RunPad(const PadPlan& plan, const void* src, void* dst, ThreadPool& pool) {
  const PadDesc& d = plan.desc;
  const int64_t pixel = 16 * SizeOf(d.type.dtype);  // bytes
  const int64_t rows = d.planes * d.dst_height(), width = d.dst_width();
  const int64_t zeros_after = width - plan.zeros_before - plan.copied;
  // Zero is all bits zero in every type, or the zero point of a type of one byte.
  const auto zeros = [&](char* to, int64_t pixels) {
    std::memset(to, d.type.quantization.zero_point, pixels * pixel);
    return to + pixels * pixel;
  };
  pool.ParallelFor(plan.tasks, [&](int64_t task, int) {
    const int64_t end = std::min(rows, (task + 1) * plan.rows_per_task);
    for (int64_t row = task * plan.rows_per_task; row < end; ++row) {
      char* to = static_cast<char*>(dst) + row * width * pixel;
      const int64_t y = row % d.dst_height() - d.top;
      if (y < 0 || y >= d.height) {
        zeros(to, width);
        continue;
      }
      const int64_t at = (row / d.dst_height() * d.height + y) * d.width + plan.first;
      to = zeros(to, plan.zeros_before);
      if (plan.copied > 0) {
        std::memcpy(to, static_cast<const char*>(src) + at * pixel, plan.copied * pixel);
        to += plan.copied * pixel;
      }
      zeros(to, zeros_after);
    }
  });
}

}  // namespace bd
