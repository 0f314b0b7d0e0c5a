// cc/simd/convert/convert.h over arrays, for the tests.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"
#include "cc/base/data_type.h"

namespace bd {

// n a multiple of 16; by data type.
struct ConvertKernels {
  void (*load[kNumDataTypes])(const void* src, float* dst, int64_t n);
  void (*store[kNumDataTypes])(const float* src, void* dst, int64_t n);
};

BD_KERNEL_TABLE(ConvertKernels)

}  // namespace bd
