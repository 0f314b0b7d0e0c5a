// Contract between batch normalisation's driver and its per-ISA loops, of one channel block.
#ifndef CC_CORE_NORMALIZATION_BATCH_NORM_KERNEL_H_
#define CC_CORE_NORMALIZATION_BATCH_NORM_KERNEL_H_

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"

namespace bd {

// `pixels` pixels, 16 floats apart; all else is per lane, [16].
struct BatchNormKernels {
  // sums[0] += x - first, sums[1] += (x - first)^2.
  void (*moments)(const float* x, int64_t pixels, const float* first, double (*sums)[16]);
  // y = scale x + shift.
  void (*normalize)(const float* x, int64_t pixels, const float* scale, const float* shift,
                    float* y);
  // sums[0] += dy, sums[1] += dy (x - mean).
  void (*products)(const float* x, const float* dy, int64_t pixels, const float* mean,
                   double (*sums)[16]);
  // dx = scale dy + slope (x - mean) + offset.
  void (*gradient)(const float* x, const float* dy, int64_t pixels, const float* mean,
                   const float* scale, const float* slope, const float* offset, float* dx);
};

BD_KERNEL_TABLE(BatchNormKernels)

}  // namespace bd

#endif  // CC_CORE_NORMALIZATION_BATCH_NORM_KERNEL_H_
