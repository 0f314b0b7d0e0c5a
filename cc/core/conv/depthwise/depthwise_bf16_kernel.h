// Depthwise rows of bfloat16.
#pragma once

#include "cc/base/cpu/kernel_table.h"
#include "cc/core/conv/depthwise/depthwise_kernel.h"

namespace bd {

struct DepthwiseBf16Kernels {
  void (*row)(const DepthwiseArgs&);  // of which `narrow` is set
};

BD_KERNEL_TABLE_OF(DepthwiseBf16Kernels, generic, avx2, avx512, avx512_bf16)

}  // namespace bd
