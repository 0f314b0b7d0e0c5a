#include <algorithm>
#include <cmath>

#include "cc/core/pool/pool.h"

namespace bd {
namespace {

float PoolWindow(const PoolDesc& desc, const float* plane, int64_t y, int64_t x, int64_t lane) {
  const Window1d &rows = desc.rows, &cols = desc.cols;
  float max = -INFINITY, sum = 0.f;
  int64_t count = 0;
  for (int64_t kh = 0; kh < rows.kernel; ++kh) {
    for (int64_t kw = 0; kw < cols.kernel; ++kw) {
      const int64_t h = y * rows.stride - rows.pad_before + kh;
      const int64_t w = x * cols.stride - cols.pad_before + kw;
      if (h < 0 || h >= rows.size || w < 0 || w >= cols.size) continue;
      const float value = plane[(h * cols.size + w) * 16 + lane];
      max = std::max(max, value);
      sum += value;
      ++count;
    }
  }
  return desc.kind == PoolKind::kMax ? max : sum / static_cast<float>(count);
}

}  // namespace

void PoolRef(const PoolPlan& plan, const float* src, float* dst) {
  const PoolDesc& desc = plan.desc;
  const int64_t out_h = desc.rows.out, out_w = desc.cols.out;
  const int64_t dst_channels = desc.plain_dst ? desc.channels : plan.blocks * 16;
  for (int64_t n = 0; n < desc.n; ++n) {
    for (int64_t c = 0; c < dst_channels; ++c) {
      const int64_t plane = n * plan.blocks + c / 16, lane = c % 16;
      const float* s = src + plane * desc.rows.size * desc.cols.size * 16;
      for (int64_t y = 0; y < out_h; ++y) {
        for (int64_t x = 0; x < out_w; ++x) {
          float* d = desc.plain_dst ? dst + n * desc.channels + c
                                    : dst + ((plane * out_h + y) * out_w + x) * 16 + lane;
          *d = c < desc.channels ? PoolWindow(desc, s, y, x, lane) : 0.f;
        }
      }
    }
  }
}

}  // namespace bd
