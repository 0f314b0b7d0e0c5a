// The definition of convolution, for tests: one output element at a time,
// accumulated in double, then the post-op chain, then pooling.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "cc/core/conv/conv.h"
#include "cc/layout/tensor_view.h"
#include "tests/cc/post_ops_ref.h"

namespace bd {
namespace {

double Sum(const ConvDesc& d, const float* src, const float* hwio, int64_t n, int64_t o, int64_t oh,
           int64_t ow) {
  const int64_t ic_group = d.ic() / d.groups, group = o / (d.oc() / d.groups);
  double sum = 0;
  for (int64_t kh = 0; kh < d.kh(); ++kh) {
    for (int64_t kw = 0; kw < d.kw(); ++kw) {
      const int64_t y = oh * d.sh() + kh * d.dh() - d.pad_top(),
                    x = ow * d.sw() + kw * d.dw() - d.pad_left();
      if (y < 0 || y >= d.ih() || x < 0 || x >= d.iw()) continue;
      for (int64_t i = 0; i < ic_group; ++i) {
        const int64_t c = group * ic_group + i;
        sum += double{src[d.src.element(n, c, y * d.iw() + x)]} *
               hwio[((kh * d.kw() + kw) * ic_group + i) * d.oc() + o];
      }
    }
  }
  return sum;
}

// Before pooling.
inline void ResultRef(const ConvDesc& d, const float* src, const float* hwio,
                      const float* const* args, float* dst) {
  const int64_t channels = d.dst.blocks() * d.dst.lanes();
  for (int64_t n = 0; n < d.n(); ++n) {
    for (int64_t o = 0; o < channels; ++o) {
      for (int64_t y = 0; y < d.oh(); ++y) {
        for (int64_t x = 0; x < d.ow(); ++x) {
          const int64_t at = d.dst.element(n, o, y * d.ow() + x);
          dst[at] =
              o >= d.oc()
                  ? 0.f
                  : static_cast<float>(ApplyPostOpsRef(d.post_ops, Sum(d, src, hwio, n, o, y, x),
                                                       args, dst, at, o, n * channels + o));
        }
      }
    }
  }
}

inline void PooledRef(const ConvDesc& d, const float* src, const float* hwio,
                      const float* const* args, float* dst) {
  ConvDesc whole = d;
  whole.pool_h = whole.pool_w = 1;
  whole.dst = d.result();
  std::vector<float> result(whole.dst.elements());
  ResultRef(whole, src, hwio, args, result.data());
  for (int64_t n = 0; n < d.n(); ++n) {
    for (int64_t o = 0; o < d.dst.blocks() * d.dst.lanes(); ++o) {
      for (int64_t y = 0; y < d.dst_h(); ++y) {
        for (int64_t x = 0; x < d.dst_w(); ++x) {
          float max = -std::numeric_limits<float>::infinity();
          for (int64_t i = 0; i < d.pool_h * d.pool_w; ++i) {
            const int64_t row = y * d.pool_h + i / d.pool_w, column = x * d.pool_w + i % d.pool_w;
            max = std::max(max, result[whole.dst.element(n, o, row * d.ow() + column)]);
          }
          dst[d.dst.element(n, o, y * d.dst_w() + x)] = max;
        }
      }
    }
  }
}

}  // namespace

// The definition: double accumulation over plain loops, chain included.
inline void ConvRef(const ConvDesc& d, const float* src, const float* hwio,
                    const float* const* args, float* dst) {
  d.pooled() ? PooledRef(d, src, hwio, args, dst) : ResultRef(d, src, hwio, args, dst);
}

}  // namespace bd
