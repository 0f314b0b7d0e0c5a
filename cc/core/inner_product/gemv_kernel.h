// Contract of the kernels of small-M products on plain weights (gemv where M = 1).
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"

namespace bd {

// dst[m][c] = bias[c] + sum_k src[m * ic + k] * weights[k * weights_stride + c] for
// `count` columns, k ascending; dst is dense.
struct GemvArgs {
  const float* src;
  int64_t rows, ic;
  bool skips_zeros;  // weights are finite: those that meet only zeros are not read
  const float* weights;
  int64_t weights_stride;
  const float* bias;  // or null
  float* dst;
  int64_t count;
};

struct GemvKernels {
  int max_rows;       // of more, packed weights are faster even where they are packed anew
  int max_kept_rows;  // the same where they are packed once
  // How many of src[rows][0 .. ic) are not zero in all rows.
  int64_t (*count_met)(const float* src, int64_t rows, int64_t ic);
  void (*multiply)(const GemvArgs&);
};

BD_KERNEL_TABLE(GemvKernels)

}  // namespace bd
