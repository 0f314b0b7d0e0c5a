// Contract of the kernel that multiplies rows of floats with packed panels of one block, whose
// weights may be narrower than the arithmetic: what one row waits for is the memory that they come
// from.
//
// A panel is lines of 64 bytes, each some rows of 16 columns:
//
//   f32   [k][16]
//   bf16  [k / 2][16][2], so that both rows of a line are one operation away from floats
//   s8    [k / 4][4][16]
//
// with zeros behind the last row.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"
#include "cc/base/data_type.h"
#include "cc/core/gemm/tiles/gemm_kernel.h"

namespace bd {

constexpr int64_t kLineFloats = 16;  // the memory of a line

// Rows of a line of a panel: 64 bytes are 16 columns of so many.
constexpr int64_t LineRows(DataType weights) {
  return weights == DataType::s8 ? 4 : weights == DataType::bf16 ? 2 : 1;
}
// Floats that the memory of a panel of k rows is as large as.
constexpr int64_t PanelFloats(DataType weights, int64_t k) {
  return (k + LineRows(weights) - 1) / LineRows(weights) * kLineFloats;
}
// Where element `column` of row k lies in a panel.
constexpr int64_t PanelIndex(DataType weights, int64_t k, int64_t column) {
  return weights == DataType::bf16 ? (k / 2 * 16 + column) * 2 + k % 2 : k * 16 + column;
}

// For every row r and panel s, with column[s] its first column of dst:
//
//   dst[r][column[s] + j] = init[r][column[s] + j]
//                           + unscale[s][j] * sum_k src[r][k] * panels[s][k][j],
//
// 0 <= j < 16, the sum in the order of k.
struct ProductArgs {
  // Row r is at src + (r / inner_rows) * outer_stride + (r % inner_rows) * inner_stride.
  const float* src;
  int64_t inner_rows, outer_stride, inner_stride;
  int64_t rows, k;
  DataType weights;     // f32, bf16 or s8
  const float* panels;  // the first line of k rows
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

// k rows of a panel as floats, row_floats apart, times scales[16] where these are not null.
struct WidenPanelArgs {
  DataType weights;
  const float* panel;
  int64_t k;
  const float* scales;
  float* dst;
  int64_t row_floats;
};

struct ProductKernels {
  int tile_rows;  // the rows that share one pass over a panel
  void (*multiply)(const ProductArgs&);
  void (*widen)(const WidenPanelArgs&);
};

BD_KERNEL_TABLE(ProductKernels)

}  // namespace bd
