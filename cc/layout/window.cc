#include "cc/layout/window.h"

#include <algorithm>

#include "cc/base/str_cat.h"

namespace bd {
namespace {

// Every product below then fits into 64 bits.
constexpr int64_t kMaxParameter = INT32_MAX;

std::string CheckRange(const char* name, int64_t value, int64_t lowest) {
  if (value >= lowest && value <= kMaxParameter) return "";
  return StrCat(name, " must be between ", lowest, " and ", kMaxParameter, ", got ", value);
}

std::string CheckWindow(const Window1d& w) {
  if (w.size < 0 || w.size > INT64_MAX / 4) {
    return StrCat("input size must not be negative or beyond 2^61, got ", w.size);
  }
  for (const auto& error :
       {CheckRange("kernel size", w.kernel, 1), CheckRange("stride", w.stride, 1),
        CheckRange("dilation", w.dilation, 1), CheckRange("padding before", w.pad_before, 0),
        CheckRange("padding after", w.pad_after, 0)}) {
    if (!error.empty()) return error;
  }
  return "";
}

}  // namespace

std::string ResolveWindow(Padding padding, Window1d* window) {
  Window1d& w = *window;
  w.out = 0;
  if (padding != Padding::kExplicit) w.pad_before = w.pad_after = 0;
  if (std::string error = CheckWindow(w); !error.empty()) return error;

  if (padding == Padding::kSame) {
    w.out = (w.size + w.stride - 1) / w.stride;
    const int64_t needed =
        w.out == 0 ? 0 : std::max<int64_t>(0, (w.out - 1) * w.stride + w.extent() - w.size);
    w.pad_before = needed / 2;
    w.pad_after = needed - w.pad_before;
    return "";
  }
  const int64_t padded = w.pad_before + w.size + w.pad_after;
  const int64_t out = (padded - w.extent() + w.stride) / w.stride;  // truncates, as TensorFlow
  if (out < 0) {
    return StrCat("window of ", w.extent(), " elements does not fit into ", padded, " (input ",
                  w.size, ", padding ", w.pad_before, " and ", w.pad_after, ")");
  }
  w.out = out;
  return "";
}

Dims Windows::OutSizes(int rank) const {
  const int64_t sizes[] = {d.out, h.out, w.out};
  return Dims(sizes + 3 - rank, rank);
}

}  // namespace bd
