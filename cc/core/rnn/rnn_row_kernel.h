// Contract of the kernels that multiply one row of floats with panels of bfloat16 by VDPBF16PS.
//
// Widening a weight takes as many instructions as multiplying it, and a row meets each weight
// once. A float x is upper + lower + a rest of at most 2^-17 |x|, where upper and lower are
// bfloat16, so two products for each pair of weights do without widening. A sum of upper parts
// that is no finite number is the result, as lower parts would make a NaN of an infinity.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"
#include "cc/base/data_type.h"

namespace bd {

// For every panel p (product_kernel.h) of k rows of bfloat16, where `unscale` may be null:
//
//   sums[column[p] + j] += unscale[p][j] * sum_k (upper[k] + lower[k]) * panels[p][k][j]
//
// If k is odd, upper[k] and lower[k] are zero.
struct RnnRowArgs {
  const Bfloat16* upper;
  const Bfloat16* lower;
  int64_t k;
  const float* panels;
  int64_t panel_stride;
  int num_panels;
  const int* column;
  const float* unscale;
  float* sums;
};

// Null where the set lacks the instruction.
struct RnnRowKernels {
  void (*split)(const float* src, int64_t count, Bfloat16* upper, Bfloat16* lower);
  void (*multiply)(const RnnRowArgs&);
  // A panel of k rows of bytes as one of bfloat16, which holds each of them.
  void (*bfloat16_from_bytes)(const float* bytes, int64_t k, float* dst);
};

BD_KERNEL_TABLE_OF(RnnRowKernels, generic, avx512_bf16)

}  // namespace bd
