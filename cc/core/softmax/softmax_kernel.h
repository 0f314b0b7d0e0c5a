// Contract between the softmax driver and its per-ISA kernels.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"

namespace bd {

struct SoftmaxKernels {
  // Rows of `channels` >= 1 floats, one after the other; dst may be src.
  void (*rows)(const float* src, int64_t rows, int64_t channels, float* dst);
};

BD_KERNEL_TABLE(SoftmaxKernels)

}  // namespace bd
