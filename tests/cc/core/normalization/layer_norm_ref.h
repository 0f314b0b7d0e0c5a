// The definition of layer norm, for tests.
#pragma once

#include <cmath>
#include <vector>

#include "cc/core/normalization/layer_norm.h"

namespace bd {

// The same result in double, rounded once.
inline void LayerNormRef(const LayerNormDesc& d, const float* src, const float* gamma,
                         const float* beta, float* dst) {
  const int64_t padded = d.blocked ? (d.channels + 15) / 16 * 16 : d.channels;
  for (int64_t n = 0; n < d.images; ++n) {
    for (int64_t p = 0; p < d.pixels; ++p) {
      const auto at = [&](int64_t c) {
        return d.blocked ? ((n * padded + c / 16 * 16) * d.pixels + p * 16) + c % 16
                         : (n * d.pixels + p) * padded + c;
      };
      double mean = 0, variance = 0;
      for (int64_t c = 0; c < d.channels && d.centered; ++c) {
        mean += double{src[at(c)]} / d.channels;
      }
      for (int64_t c = 0; c < d.channels; ++c) {
        variance += (src[at(c)] - mean) * (src[at(c)] - mean) / d.channels;
      }
      const double inverse = 1 / std::sqrt(variance + d.epsilon);
      for (int64_t c = 0; c < padded; ++c) {
        dst[at(c)] = c < d.channels
                         ? static_cast<float>((src[at(c)] - mean) * inverse * gamma[c] + beta[c])
                         : 0.f;
      }
    }
  }
}

// The same in double, rounded once; no scratch.
inline void LayerNormGradRef(const LayerNormDesc& d, const LayerNormGradBuffers& b) {
  const int64_t padded = d.blocked ? (d.channels + 15) / 16 * 16 : d.channels;
  std::vector<double> dgamma(d.channels), dbeta(d.channels);
  for (int64_t n = 0; n < d.images; ++n) {
    for (int64_t p = 0; p < d.pixels; ++p) {
      const auto at = [&](int64_t c) {
        if (!d.blocked) return (n * d.pixels + p) * padded + c;
        return (n * padded + c / 16 * 16) * d.pixels + p * 16 + c % 16;
      };
      double mean = 0, variance = 0, sum = 0, product = 0;
      for (int64_t c = 0; c < d.channels && d.centered; ++c) {
        mean += double{b.src[at(c)]} / d.channels;
      }
      for (int64_t c = 0; c < d.channels; ++c) {
        variance += (b.src[at(c)] - mean) * (b.src[at(c)] - mean) / d.channels;
      }
      const double inverse = 1 / std::sqrt(variance + d.epsilon);
      for (int64_t c = 0; c < d.channels; ++c) {
        const double g = double{b.ddst[at(c)]} * b.gamma[c];
        const double normal = (b.src[at(c)] - mean) * inverse;
        if (d.centered) sum += g / d.channels;
        product += g * normal / d.channels;
        dgamma[c] += b.ddst[at(c)] * normal;
        dbeta[c] += b.ddst[at(c)];
      }
      for (int64_t c = 0; c < padded; ++c) {
        const double normal = (b.src[at(c)] - mean) * inverse;
        const double g = c < d.channels ? double{b.ddst[at(c)]} * b.gamma[c] : 0;
        b.dsrc[at(c)] =
            c < d.channels ? static_cast<float>(inverse * (g - sum - normal * product)) : 0.f;
      }
    }
  }
  for (int64_t c = 0; c < d.channels; ++c) {
    b.dgamma[c] = static_cast<float>(dgamma[c]);
    b.dbeta[c] = static_cast<float>(dbeta[c]);
  }
}

}  // namespace bd
