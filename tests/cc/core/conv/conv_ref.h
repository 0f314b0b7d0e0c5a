// The definition of convolution, for tests: one output element at a time,
// accumulated in double, then the post-op chain, then pooling.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/cc/core/conv/conv_case.h"
#include "tests/cc/post_ops_ref.h"

namespace bd {
namespace {

// The chain after sums of products sum(n, o, y, x); tails are zero.
template <typename Sum>
void ResultsRef(const TensorView& view, const PostOpChain& chain, const float* const* args,
                float* dst, Sum&& sum) {
  const int64_t channels = view.blocks() * view.lanes(), width = view.w();
  const TensorView operands(view.dtype(), view.layout(), view.dims());  // of a part, too
  for (int64_t n = 0; n < view.n(); ++n) {
    for (int64_t o = 0; o < channels; ++o) {
      for (int64_t p = 0; p < view.pixels(); ++p) {
        const int64_t at = operands.element(n, o, p);
        dst[view.element(n, o, p)] =
            o >= view.c()
                ? 0.f
                : static_cast<float>(ApplyPostOpsRef(chain, sum(n, o, p / width, p % width), args,
                                                     dst, at, o, n * channels + o));
      }
    }
  }
}

// Before pooling.
inline void ResultRef(const ConvDesc& d, const float* src, const float* hwio,
                      const float* const* args, float* dst) {
  ResultsRef(d.dst, d.post_ops, args, dst, [&](int64_t n, int64_t o, int64_t y, int64_t x) {
    double sum = 0;
    ForProducts(d, n, o, y, x, [&](int64_t s, int64_t w) { sum += double{src[s]} * hwio[w]; });
    return sum;
  });
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

// Within `tolerance` of the largest magnitude.
inline void ExpectClose(const GuardedBuffer& dst, const GuardedBuffer& expected, double tolerance) {
  double largest = 0;
  for (float x : expected) largest = std::max(largest, std::fabs(double{x}));
  for (size_t i = 0; i < dst.size(); ++i) {
    ASSERT_LE(std::fabs(double{dst[i]} - expected[i]), tolerance * largest)
        << dst[i] << " is not " << expected[i] << " at " << i;
  }
}

// The definition: double accumulation over plain loops, chain included.
inline void ConvRef(const ConvDesc& d, const float* src, const float* hwio,
                    const float* const* args, float* dst) {
  d.pooled() ? PooledRef(d, src, hwio, args, dst) : ResultRef(d, src, hwio, args, dst);
}

}  // namespace bd
