// Batch normalisation by given moments folded into the linear op before it. With
// f = gamma / sqrt(variance + epsilon),
//
//   gamma (w x + bias - mean) / sqrt(variance + epsilon) + beta
//     = (f w) x + (f (bias - mean) + beta)
//
// so the op's weights are scaled by channel, and one row of channels is all that is added to it.
#pragma once

#include <cstdint>

#include "cc/base/threads/thread_pool.h"

namespace bd {

// Weights [outer, channels, inner], for example HWIO with inner = 1.
struct FoldBatchNormDesc {
  int64_t outer = 0, channels = 0, inner = 1;
  float epsilon = 0.f;
};

struct FoldBatchNormArgs {
  const float* weights = nullptr;
  const float *bias = nullptr, *gamma = nullptr, *beta = nullptr;  // [channels], these and
  const float *mean = nullptr, *variance = nullptr;
  float* folded = nullptr;  // as weights
  float* shift = nullptr;   // [channels]
};

void FoldBatchNorm(const FoldBatchNormDesc& desc, const FoldBatchNormArgs& args, ThreadPool& pool);

}  // namespace bd
