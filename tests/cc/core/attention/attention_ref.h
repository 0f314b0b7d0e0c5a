// The definition of attention, for tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "cc/core/attention/attention.h"

namespace bd {
namespace {

bool IsMasked(const AttentionDesc& d, const AttentionBuffers& buffers, int64_t b, int64_t n,
              int64_t t, int64_t s) {
  return d.has_mask && buffers.mask[d.mask.offset(b, n, t) + s * d.mask.key_stride] == 0;
}

double Score(const AttentionDesc& d, const AttentionBuffers& buffers, int64_t b, int64_t n,
             int64_t t, int64_t s) {
  const auto bias = [&](int i) {
    return buffers.biases[i][d.biases[i].offset(b, n, t) + s * d.biases[i].key_stride];
  };
  const int late = d.num_biases - d.late_biases;
  const float* q = buffers.q + d.q.offset(b, n, t);
  const float* k = buffers.k + d.k.offset(b, n / (d.heads / d.kv_heads), s);
  double score = 0.;
  for (int64_t h = 0; h < d.head_size; ++h) score += static_cast<double>(q[h]) * k[h];
  score *= d.scale;
  if (d.soft_cap != 0.f) score = d.soft_cap * std::tanh(score / d.soft_cap);
  for (int i = 0; i < late; ++i) score += bias(i);
  if (IsMasked(d, buffers, b, n, t, s)) score = d.masked;
  for (int i = late; i < d.num_biases; ++i) score += bias(i);
  return score;
}

void Row(const AttentionDesc& d, const AttentionBuffers& buffers, int64_t b, int64_t n, int64_t t) {
  float* dst = buffers.dst + d.dst.offset(b, n, t);
  std::vector<double> weight(d.causal ? std::min(d.keys, t + 1) : d.keys);
  double largest = -INFINITY, sum = 0.;
  for (size_t s = 0; s < weight.size(); ++s) {
    weight[s] = Score(d, buffers, b, n, t, static_cast<int64_t>(s));
    largest = std::max(largest, weight[s]);
  }
  for (double& w : weight) sum += w = std::exp(w - largest);
  for (int64_t h = 0; h < d.value_size; ++h) {
    double result = 0.;
    for (size_t s = 0; s < weight.size(); ++s) {
      if (d.zero_masked && IsMasked(d, buffers, b, n, t, static_cast<int64_t>(s))) continue;
      const int64_t row = d.v.offset(b, n / (d.heads / d.kv_heads), static_cast<int64_t>(s));
      result += weight[s] / sum * buffers.v[row + h];
    }
    dst[h] = static_cast<float>(result);
  }
}

}  // namespace

// The same result from nested loops over the definition in attention.h, in double.
inline void AttentionRef(const AttentionDesc& d, const AttentionBuffers& buffers) {
  for (int64_t b = 0; b < d.batch; ++b) {
    for (int64_t n = 0; n < d.heads; ++n) {
      for (int64_t t = 0; t < d.queries; ++t) Row(d, buffers, b, n, t);
    }
  }
}

}  // namespace bd
