#include <algorithm>
#include <cmath>
#include <vector>

#include "cc/core/normalization/fold_batch_norm.h"

namespace bd {

void FoldBatchNorm(const FoldBatchNormDesc& d, const FoldBatchNormArgs& a, ThreadPool& pool) {
  std::vector<float> factors(d.channels);
  for (int64_t c = 0; c < d.channels; ++c) {
    const double factor = a.gamma[c] / std::sqrt(double{a.variance[c]} + d.epsilon);
    factors[c] = static_cast<float>(factor);
    a.shift[c] = static_cast<float>(factor * (double{a.bias[c]} - a.mean[c]) + a.beta[c]);
  }
  // As many rows [channels, inner] a task as make it worth a thread.
  constexpr int64_t kTaskFloats = 1 << 14;
  const int64_t row = d.channels * d.inner;
  const int64_t rows = std::max<int64_t>(1, kTaskFloats / std::max<int64_t>(row, 1));
  pool.ParallelFor((d.outer + rows - 1) / rows, [&](int64_t task, int) {
    for (int64_t r = task * rows; r < std::min(d.outer, (task + 1) * rows); ++r) {
      const float* src = a.weights + r * row;
      float* dst = a.folded + r * row;
      if (d.inner == 1) {
        for (int64_t c = 0; c < d.channels; ++c) dst[c] = src[c] * factors[c];
        continue;
      }
      for (int64_t c = 0; c < d.channels; ++c, src += d.inner, dst += d.inner) {
        for (int64_t i = 0; i < d.inner; ++i) dst[i] = src[i] * factors[c];
      }
    }
  });
}

}  // namespace bd
