// The definition of backward weights, for tests.
#pragma once

#include <vector>

#include "cc/core/conv/backward_weights/backward_weights.h"
#include "cc/layout/tensor_view.h"

namespace bd {
// The definition, in double, for tests.
inline void BackwardWeightsRef(const ConvDesc& d, const float* src, const float* ddst,
                               float* dweights) {
  const int64_t inputs = d.ic() / d.groups, outputs = d.oc() / d.groups;
  std::vector<double> sums(d.kh() * d.kw() * inputs * d.oc(), 0.);
  for (int64_t n = 0; n < d.n(); ++n) {
    for (int64_t y = 0; y < d.oh(); ++y) {
      for (int64_t x = 0; x < d.ow(); ++x) {
        for (int64_t kh = 0; kh < d.kh(); ++kh) {
          for (int64_t kw = 0; kw < d.kw(); ++kw) {
            const int64_t h = y * d.sh() + kh * d.dh() - d.pad_top();
            const int64_t w = x * d.sw() + kw * d.dw() - d.pad_left();
            if (h < 0 || h >= d.ih() || w < 0 || w >= d.iw()) continue;
            for (int64_t o = 0; o < d.oc(); ++o) {
              const double dy = ddst[d.dst.element(n, o, y * d.ow() + x)];
              for (int64_t c = 0; c < inputs; ++c) {
                const int64_t channel = o / outputs * inputs + c;
                sums[((kh * d.kw() + kw) * inputs + c) * d.oc() + o] +=
                    dy * src[d.src.element(n, channel, h * d.iw() + w)];
              }
            }
          }
        }
      }
    }
  }
  for (size_t i = 0; i < sums.size(); ++i) dweights[i] = static_cast<float>(sums[i]);
}

}  // namespace bd
