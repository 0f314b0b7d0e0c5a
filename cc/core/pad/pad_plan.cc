#include <algorithm>

#include "cc/core/pad/pad.h"

namespace bd {

std::string MakePadPlan(const PadDesc& desc, PadPlan* plan) {
  constexpr int64_t kTaskBytes = 128 << 10;  // a few microseconds
  if (desc.planes < 0 || desc.height < 0 || desc.width < 0) return "sizes must not be negative";
  if (desc.dst_height() < 0 || desc.dst_width() < 0) {
    return "paddings cut off more than " + std::to_string(desc.height) + "x" +
           std::to_string(desc.width) + " pixels";
  }
  PadPlan p;
  p.desc = desc;
  // Columns [begin, end) of dst come from src.
  const int64_t begin = std::clamp<int64_t>(desc.left, 0, desc.dst_width());
  const int64_t end = std::clamp(desc.left + desc.width, begin, desc.dst_width());
  p.zeros_before = begin;
  p.copied = end - begin;
  p.first = begin - desc.left;
  const int64_t rows = desc.planes * desc.dst_height(), row_bytes = desc.dst_width() * 64;
  p.rows_per_task = std::max<int64_t>(1, kTaskBytes / std::max<int64_t>(1, row_bytes));
  p.tasks = row_bytes == 0 ? 0 : (rows + p.rows_per_task - 1) / p.rows_per_task;
  *plan = p;
  return "";
}

}  // namespace bd
