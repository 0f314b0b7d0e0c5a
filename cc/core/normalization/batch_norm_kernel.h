// Contract between batch normalisation's driver and its per-ISA loops, of one channel block.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"

namespace bd {

// What stands between dst and ddst: nothing, or a clamp whose gradient passes where
// 0 < dst (kRelu), or 0 < dst < 6 (kRelu6).
enum class BatchNormClamp { kNone, kRelu, kRelu6 };
constexpr int kBatchNormClamps = 3;

// `pixels` pixels, 16 floats apart; all else is per lane, [16]. Backward, dy counts where
// y = y_scale x + y_shift, with the bits of `normalize`, lets it pass; the array's index is the
// BatchNormClamp.
struct BatchNormKernels {
  // sums[0] += x - first, sums[1] += (x - first)^2.
  void (*moments)(const float* x, int64_t pixels, const float* first, double (*sums)[16]);
  // y = scale x + shift.
  void (*normalize)(const float* x, int64_t pixels, const float* scale, const float* shift,
                    float* y);
  // sums[0] += dy, sums[1] += dy (x - mean).
  void (*products[kBatchNormClamps])(const float* x, const float* dy, int64_t pixels,
                                     const float* mean, const float* y_scale, const float* y_shift,
                                     double (*sums)[16]);
  // dx = scale dy + slope (x - mean) + offset; y_scale is scale.
  void (*gradient[kBatchNormClamps])(const float* x, const float* dy, int64_t pixels,
                                     const float* mean, const float* scale, const float* slope,
                                     const float* offset, const float* y_shift, float* dx);
};

BD_KERNEL_TABLE(BatchNormKernels)

}  // namespace bd
