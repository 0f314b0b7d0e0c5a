// The definition of backward weights, for tests.
#pragma once

#include <vector>

#include "cc/core/conv/backward_weights/backward_weights.h"
#include "tests/cc/core/conv/conv_case.h"

namespace bd {
// The definition, in double, for tests.
inline void BackwardWeightsRef(const ConvDesc& d, const float* src, const float* ddst,
                               float* dweights) {
  std::vector<double> sums(d.kh() * d.kw() * (d.ic() / d.groups) * d.oc()), dy(d.oc());
  for (int64_t n = 0; n < d.n(); ++n) {
    for (int64_t y = 0; y < d.oh(); ++y) {
      for (int64_t x = 0; x < d.ow(); ++x) {
        for (int64_t o = 0; o < d.oc(); ++o) dy[o] = ddst[d.dst.element(n, o, y * d.ow() + x)];
        ForProducts(d, n, y, x, [&, to = sums.data()](int64_t o, int64_t s, int64_t w) {
          to[w] += dy[o] * src[s];
        });
      }
    }
  }
  for (size_t i = 0; i < sums.size(); ++i) dweights[i] = static_cast<float>(sums[i]);
}

}  // namespace bd
