// The definition of pooling, for tests.
#pragma once

#include <cmath>

#include "cc/core/pool/pool.h"

namespace bd {
namespace {

// One window of one channel, whose pixels are `stride` floats apart.
float PoolWindow(const PoolDesc& desc, const float* channel, int64_t stride, int64_t z, int64_t y,
                 int64_t x) {
  const Window1d &depth = desc.windows.d, &rows = desc.windows.h, &cols = desc.windows.w;
  float max = -INFINITY, sum = 0.f;
  int64_t count = 0;
  for (int64_t kd = 0; kd < depth.kernel; ++kd) {
    for (int64_t kh = 0; kh < rows.kernel; ++kh) {
      for (int64_t kw = 0; kw < cols.kernel; ++kw) {
        const int64_t d = z * depth.stride - depth.pad_before + kd;
        const int64_t h = y * rows.stride - rows.pad_before + kh;
        const int64_t w = x * cols.stride - cols.pad_before + kw;
        if (d < 0 || d >= depth.size || h < 0 || h >= rows.size || w < 0 || w >= cols.size) {
          continue;
        }
        const float value = channel[((d * rows.size + h) * cols.size + w) * stride];
        if (!(value <= max)) max = std::isnan(max) ? max : value;  // a NaN stays
        sum += value;
        ++count;
      }
    }
  }
  return desc.kind == PoolKind::kMax ? max : sum / static_cast<float>(count);
}

}  // namespace

// The same result of float32 from nested loops over the definition in pool.h.
inline void PoolRef(const PoolPlan& plan, const float* src, float* dst) {
  const PoolDesc& desc = plan.desc;
  const TensorView &from = desc.src, &to = desc.dst;
  const int64_t out_h = desc.windows.h.out, out_w = desc.windows.w.out;
  for (int64_t n = 0; n < to.n(); ++n) {
    for (int64_t c = 0; c < to.blocks() * to.lanes(); ++c) {
      const float* channel = src + from.offset(n, c / 16, 0) + c % 16;
      for (int64_t p = 0; p < to.pixels(); ++p) {
        const float value = c < to.c() ? PoolWindow(desc, channel, 16, p / (out_h * out_w),
                                                    p / out_w % out_h, p % out_w)
                                       : 0.f;
        dst[to.offset(n, c / to.lanes(), p) + c % to.lanes()] = value;
      }
    }
  }
}

}  // namespace bd
