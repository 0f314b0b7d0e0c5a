// What a core can do at most with each ISA.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"

namespace bd {

struct PeakKernels {
  // Runs multiply-adds on registers alone; an iteration has flops_per_iteration of them.
  void (*multiply_add)(int64_t iterations);
  int64_t flops_per_iteration;
  // The same of bfloat16, with DotPairs, and of bytes, with DotQuads: a product and a sum are two
  // operations.
  void (*dot_pairs)(int64_t iterations);
  int64_t pair_operations;
  void (*dot_quads)(int64_t iterations);
  int64_t quad_operations;
  // Reads all of src and returns the sum; floats is a multiple of 256.
  float (*read)(const float* src, int64_t floats);
};
BD_KERNEL_TABLE_OF(PeakKernels, generic, avx2, avx2_vnni, avx512, avx512_vnni, avx512_bf16)

}  // namespace bd
