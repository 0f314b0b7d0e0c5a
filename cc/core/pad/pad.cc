#include "cc/core/pad/pad.h"

#include <algorithm>
#include <cstring>

#include "cc/base/size.h"
#include "cc/base/str_cat.h"

namespace bd {

std::string MakePadPlan(const PadDesc& desc, PadPlan* plan) {
  constexpr int64_t kTaskBytes = 128 << 10;  // a few microseconds
  for (int64_t side : {desc.top, desc.bottom, desc.left, desc.right}) {
    if (side < -Size::kMost || side > Size::kMost) return "paddings must be in [-2^47, 2^47]";
  }
  for (int64_t size : {desc.planes, desc.height, desc.width}) {
    if (!Size(size).fits()) return "sizes must be in [0, 2^47]";
  }
  if (desc.dst_height() < 0 || desc.dst_width() < 0) {
    return StrCat("paddings cut off more than ", desc.height, "x", desc.width, " pixels");
  }
  const Size row = Size(desc.dst_width()) * kBlock * SizeOf(desc.type.dtype);
  if (!(row * desc.dst_height() * desc.planes).fits()) {
    return StrCat("a result of ", desc.planes, " planes of ", desc.dst_height(), "x",
                  desc.dst_width(), " pixels is too large");
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
  p.tasks = row_bytes == 0 ? 0 : CeilDiv(rows, std::max<int64_t>(1, kTaskBytes / row_bytes));
  *plan = p;
  return "";
}

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
  pool.ForRanges(rows, plan.tasks, [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) {
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
