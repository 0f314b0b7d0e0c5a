// Contract of the fast inner product's work on weights, 16 columns at a time (fip.h).
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"

namespace bd {

struct FipWeightsKernels {
  // The sums of the squares and of the magnitudes of column i, in order.
  void (*squares)(int64_t rows, int64_t row_stride, const float* weights, double* squares,
                  double* sums);
  // Every column i times factors[i].
  void (*scale)(int64_t rows, int64_t row_stride, const float* factors, float* weights);
  // terms[i] -= s y1 y2 over the pairs of `taps` taps of 16 rows.
  void (*add_terms)(int64_t taps, int64_t row_stride, const float* weights, float* terms);
};

BD_KERNEL_TABLE(FipWeightsKernels)

}  // namespace bd
