// The definition of squeeze excite, for tests.
#pragma once

#include <vector>

#include "cc/core/squeeze_excite/squeeze_excite.h"
#include "tests/cc/post_ops_ref.h"

namespace bd {
namespace {

double Apply(const PostOpChain& chain, double x) {
  return ApplyPostOpsRef(chain, x, nullptr, nullptr, 0, 0, 0);
}

}  // namespace

// The same result from nested loops over the definition in squeeze_excite.h, in double.
inline void SqueezeExciteRef(const SqueezeExcitePlan& plan, const SqueezeExciteBuffers& b) {
  const SqueezeExciteDesc& d = plan.desc;
  const int64_t channels = d.src.c(), pixels = d.src.pixels();
  const int64_t dst_channels = d.dst.blocks() * d.dst.lanes();
  for (int64_t n = 0; n < d.src.n(); ++n) {
    std::vector<double> hidden(b.reduce_bias, b.reduce_bias + d.squeezed);
    for (int64_t c = 0; c < channels; ++c) {
      const float* plane = b.src + d.src.offset(n, c / 16, 0) + c % 16;
      double mean = 0;
      for (int64_t p = 0; p < pixels; ++p) mean += plane[p * 16];
      mean /= static_cast<double>(pixels);
      for (int64_t r = 0; r < d.squeezed; ++r) {
        hidden[r] += mean * b.reduce_weights[c * d.squeezed + r];
      }
    }
    for (double& h : hidden) h = Apply(d.reduce_post_ops, h);
    for (int64_t c = 0; c < dst_channels; ++c) {
      double scale = 0;
      if (c < channels) {
        double sum = b.expand_bias[c];
        for (int64_t r = 0; r < d.squeezed; ++r) {
          sum += hidden[r] * b.expand_weights[r * channels + c];
        }
        scale = Apply(d.expand_post_ops, sum);
      }
      if (!d.scale_src) b.dst[n * dst_channels + c] = static_cast<float>(scale);
      for (int64_t p = 0; d.scale_src && p < pixels; ++p) {
        const int64_t at = d.src.offset(n, c / 16, p) + c % 16;
        b.dst[at] = static_cast<float>(b.src[at] * scale);
      }
    }
  }
}

}  // namespace bd
