// The definition of softmax, for tests.
#pragma once

#include <algorithm>
#include <cmath>

#include "cc/core/softmax/softmax.h"

namespace bd {

// The same result in double, rounded once.
inline void SoftmaxRef(const SoftmaxDesc& desc, const float* src, float* dst) {
  for (int64_t row = 0; row < desc.rows; ++row, src += desc.channels, dst += desc.channels) {
    if (desc.channels == 0) continue;
    const double largest = *std::max_element(src, src + desc.channels);
    double sum = 0.;
    for (int64_t c = 0; c < desc.channels; ++c) sum += std::exp(src[c] - largest);
    for (int64_t c = 0; c < desc.channels; ++c) {
      dst[c] = static_cast<float>(std::exp(src[c] - largest) / sum);
    }
  }
}

}  // namespace bd
