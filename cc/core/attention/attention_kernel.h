// Contract between the attention driver and its per-ISA kernels. The products between them are
// those of cc/core/gemm.
#ifndef CC_CORE_ATTENTION_ATTENTION_KERNEL_H_
#define CC_CORE_ATTENTION_ATTENTION_KERNEL_H_

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"

namespace bd {

constexpr int kMaxAttentionBiases = 2;

// Rows of scores that become weights where they are.
struct AttentionRows {
  float* scores;
  int64_t rows, stride;  // stride: floats from a row to the next
  // Row r takes part with its first min(columns, taking_part + r * growth) columns, at least one;
  // those behind it, up to `columns`, get the weight 0.
  int64_t columns, taking_part, growth;
  // Added to the scores one after the other; elements from a row to the next.
  int biases;
  const float* bias[kMaxAttentionBiases];
  int64_t bias_stride[kMaxAttentionBiases];
  const uint8_t* mask;  // or null; where it is 0 the score is `masked`
  int64_t mask_stride;
  float masked;
};

struct AttentionKernels {
  // dst[r][c] = scale * src[r * stride + c], rows of dst one behind the other.
  void (*scale)(const float* src, int64_t stride, int64_t rows, int64_t columns, float scale,
                float* dst);
  void (*weigh)(const AttentionRows& rows);
};

BD_KERNEL_TABLE(AttentionKernels)

}  // namespace bd

#endif  // CC_CORE_ATTENTION_ATTENTION_KERNEL_H_
