// Contract between the attention driver and its per-ISA kernels. The products between them are
// those of cc/core/gemm.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"

namespace bd {

constexpr int kMaxAttentionBiases = 4;

// Rows of scores that become weights where they are.
struct AttentionRows {
  float* scores;
  int64_t rows, stride;  // stride: floats from a row to the next
  // Row r takes part with its first min(columns, taking_part + r * growth) columns, at least one;
  // those after it, up to `columns`, get the weight 0.
  int64_t columns, taking_part, growth;
  float soft_cap;  // or 0; scores have been divided by it
  // Added to the scores one after the other, those from `late_bias` on after the mask; elements
  // from a row to the next, and from a column to the next: 1, or 0 where one is for all.
  int biases, late_bias;
  const float* bias[kMaxAttentionBiases];
  int64_t bias_stride[kMaxAttentionBiases], bias_step[kMaxAttentionBiases];
  const uint8_t* mask;  // or null; where it is 0 the score is `masked`
  int64_t mask_stride, mask_step;
  float masked;
  bool zero_masked;  // the weights of masked scores are 0, in rows of nothing else, too
};

struct AttentionKernels {
  // dst[r][c] = scale * src[r * stride + c], rows of dst one after the other.
  void (*scale)(const float* src, int64_t stride, int64_t rows, int64_t columns, float scale,
                float* dst);
  // Dword [r / 2][c] of dst, which has `width` columns, is src[r][c] and src[r + 1][c] in bfloat16;
  // zero where there is none.
  void (*pair)(const float* src, int64_t stride, int64_t rows, int64_t columns, int64_t width,
               float* dst);
  void (*weigh)(const AttentionRows& rows);
  // For few queries: no loop over panels (cc/core/gemm), which would pack keys and values, more
  // work than these products themselves. scores[s] = sum over c of q[c] k[s * stride + c].
  void (*dots)(const float* q, const float* k, int64_t stride, int64_t keys, int64_t columns,
               float* scores);
  // dst[c] = sum over s of weights[s] v[s * stride + c].
  void (*combine)(const float* weights, const float* v, int64_t stride, int64_t keys,
                  int64_t columns, float* dst);
};

BD_KERNEL_TABLE(AttentionKernels)

}  // namespace bd
