// Contract between the RNN's drivers and the kernel that multiplies rows with packed weights.
#ifndef CC_CORE_RNN_RNN_PRODUCT_KERNEL_H_
#define CC_CORE_RNN_RNN_PRODUCT_KERNEL_H_

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"

namespace bd {

// Columns of a panel: one gate of 16 units.
constexpr int kRnnPanel = 16;

// For every row r and panel s, with column[s] its first column of dst:
//
//   dst[r][column[s] + j] = init[r][column[s] + j]
//                           + unscale[s][j] * sum_k src[r][k] * panels[s][k][j],
//
// 0 <= j < 16, the sum in the order of k.
struct RnnProductArgs {
  // Row r is at src + (r / inner_rows) * outer_stride + (r % inner_rows) * inner_stride.
  const float* src;
  int64_t inner_rows, outer_stride, inner_stride;
  int64_t rows, k;
  const float* panels;  // k rows of 16 floats each
  int64_t panel_stride;
  int num_panels;
  const int* column;     // of each panel
  const float* unscale;  // or null: 1
  // What comes to L2 alongside: num_panels panels, as far apart, `k` rows of each; or null.
  const float* next;
  const float* init;  // may be dst; a stride of 0 gives all rows the same
  int64_t init_stride;
  float* dst;
  int64_t dst_stride;
};

struct RnnProductKernels {
  int tile_rows;  // the rows that share one pass over a panel
  void (*multiply)(const RnnProductArgs&);
};

BD_KERNEL_TABLE(RnnProductKernels)

}  // namespace bd

#endif  // CC_CORE_RNN_RNN_PRODUCT_KERNEL_H_
