// The words of cc/simd/convert/bf16.h over arrays, for the tests.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"
#include "cc/base/data_type.h"

namespace bd {

struct Bf16Kernels {
  // acc[i] = DotPairs(acc[i], pairs i of a and b), n a multiple of 16.
  void (*dot)(float* acc, const Bfloat16* a, const Bfloat16* b, int64_t n);
  // dst[i] = DotPairs(0, the pair at `pair`, pair i of b).
  void (*dot_one)(const Bfloat16* pair, const Bfloat16* b, float* dst, int64_t n);
};

BD_KERNEL_TABLE_OF(Bf16Kernels, generic, avx2, avx512, avx512_bf16)

}  // namespace bd
