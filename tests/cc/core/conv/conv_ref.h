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

// The chain after the sums of products of all channels, sums_of(n, y, x); tails are zero.
template <typename SumsOf>
void ResultsRef(const TensorView& view, const PostOpChain& chain, const float* const* args,
                float* dst, SumsOf&& sums_of) {
  const int64_t channels = view.blocks() * view.lanes(), width = view.w();
  const TensorView operands(view.dtype(), view.layout(), view.dims());  // of a part, too
  for (int64_t n = 0; n < view.n(); ++n) {
    for (int64_t p = 0; p < view.pixels(); ++p) {
      const std::vector<double> sums = sums_of(n, p / width, p % width);
      for (int64_t o = 0; o < channels; ++o) {
        const int64_t at = operands.element(n, o, p), of_sample = n * channels + o;
        const double x =
            o < view.c() ? ApplyPostOpsRef(chain, sums[o], args, dst, at, o, of_sample) : 0.;
        dst[view.element(n, o, p)] = static_cast<float>(x);
      }
    }
  }
}

// The sums of products of a pixel's channels.
inline std::vector<double> SumsRef(const ConvDesc& d, const float* src, const float* hwio,
                                   int64_t n, int64_t y, int64_t x) {
  std::vector<double> sums(d.oc());
  ForProducts(d, n, y, x, [&, to = sums.data()](int64_t o, int64_t s, int64_t w) {
    to[o] += double{src[s]} * hwio[w];
  });
  return sums;
}

// Before pooling.
inline void ResultRef(const ConvDesc& d, const float* src, const float* hwio,
                      const float* const* args, float* dst) {
  ResultsRef(d.dst, d.post_ops, args, dst,
             [&](int64_t n, int64_t y, int64_t x) { return SumsRef(d, src, hwio, n, y, x); });
}

inline void PooledRef(const ConvDesc& d, const float* src, const float* hwio,
                      const float* const* args, float* dst) {
  ConvDesc whole = d;
  whole.pool_h = whole.pool_w = 1;
  whole.dst = d.result();
  std::vector<float> result(whole.dst.elements());
  ResultRef(whole, src, hwio, args, result.data());
  const int64_t channels = d.dst.blocks() * d.dst.lanes();
  ForIndices({d.n(), channels, d.dst_h(), d.dst_w()}, [&](const Dims& at) {
    float max = -std::numeric_limits<float>::infinity();
    for (int64_t i = 0; i < d.pool_h * d.pool_w; ++i) {
      const int64_t y = at[kH] * d.pool_h + i / d.pool_w, x = at[kW] * d.pool_w + i % d.pool_w;
      max = std::max(max, result[whole.dst.element(at[kN], at[kC], y * d.ow() + x)]);
    }
    dst[d.dst.element(at[kN], at[kC], at[kH] * d.dst_w() + at[kW])] = max;
  });
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
