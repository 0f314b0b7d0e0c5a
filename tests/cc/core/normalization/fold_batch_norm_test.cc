// Folding of batch normalisation against the formula, in double: output channels last or with
// elements side by side, more tasks than one, buffers that end at a guard page.
#include <gtest/gtest.h>

#include <cmath>

#include "cc/core/normalization/batch_norm.h"
#include "tests/cc/guarded_buffer.h"

namespace bd {
namespace {

void Check(int64_t outer, int64_t channels, int64_t inner) {
  uint32_t state = 1;
  const auto draw = [&state] {
    state = state * 1664525u + 1013904223u;
    return static_cast<float>(state >> 8) / (1 << 24) - 0.5f;
  };
  const auto fill = [&](GuardedBuffer& buffer, int64_t count, float offset) {
    for (int64_t i = 0; i < count; ++i) buffer[i] = offset + draw();
  };
  const int64_t count = outer * channels * inner;
  GuardedBuffer weights(count), folded(count), shift(channels);
  GuardedBuffer bias(channels), gamma(channels), beta(channels), mean(channels), variance(channels);
  fill(weights, count, 0);
  fill(variance, channels, 0.75f);
  for (GuardedBuffer* row : {&bias, &gamma, &beta, &mean}) fill(*row, channels, 0);
  const FoldBatchNormDesc desc = {outer, channels, inner, 0.01f};
  FoldBatchNorm(desc,
                {weights.data(), bias.data(), gamma.data(), beta.data(), mean.data(),
                 variance.data(), folded.data(), shift.data()},
                ThreadPool::Shared(2));
  for (int64_t c = 0; c < channels; ++c) {
    const double factor = gamma[c] / std::sqrt(double{variance[c]} + desc.epsilon);
    ASSERT_NEAR(shift[c], factor * (double{bias[c]} - mean[c]) + beta[c], 1e-6) << c;
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < inner; ++i) {
        const int64_t at = (o * channels + c) * inner + i;
        ASSERT_NEAR(folded[at], weights[at] * factor, 1e-6) << at;
      }
    }
  }
}

TEST(FoldBatchNorm, OutputChannelsLast) {
  Check(1, 1, 1);
  Check(9 * 3, 20, 1);
  Check(9 * 70, 100, 1);
}

TEST(FoldBatchNorm, OutputChannelsBeforeInputs) {
  Check(4, 20, 3);
  Check(25, 33, 64);
}

TEST(FoldBatchNorm, NoWeights) { Check(0, 5, 1); }

}  // namespace
}  // namespace bd
