// Contract of the kernel that multiplies rows of floats with packed panels of one block, whose
// weights may have less precision than the arithmetic: what one row waits for is the memory that
// they come from.
//
// A panel is lines of 64 bytes, each some rows of 16 columns:
//
//   f32   [k][16]
//   bf16  [k / 2][16][2], so that both rows of a line are one operation away from floats
//   s8    [k / 4][4][16]
//   u8    [k / 8][16][4], two numbers of 4 bits a byte: the lower bits are the row before
//
// with zeros after the last row.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"
#include "cc/base/data_type.h"
#include "cc/core/gemm/tiles/gemm_kernel.h"

namespace bd {

constexpr int64_t kLineFloats = 16;  // the memory of a line

// Rows of a line of a panel: 64 bytes are 16 columns of so many.
constexpr int64_t LineRows(DataType weights) {
  return weights == DataType::u8     ? 8
         : weights == DataType::s8   ? 4
         : weights == DataType::bf16 ? 2
                                     : 1;
}
// Floats that the memory of a panel of k rows is as large as.
constexpr int64_t PanelFloats(DataType weights, int64_t k) {
  return (k + LineRows(weights) - 1) / LineRows(weights) * kLineFloats;
}
// Where element `column` of row k lies in a panel; of u8 the byte.
constexpr int64_t PanelIndex(DataType weights, int64_t k, int64_t column) {
  if (weights == DataType::u8) return (k / 8 * 16 + column) * 4 + k % 8 / 2;
  return weights == DataType::bf16 ? (k / 2 * 16 + column) * 2 + k % 2 : k * 16 + column;
}

// For every row r and panel s, with column[s] its first column of dst:
//
//   dst[r][column[s] + j] = init[r][column[s] + j]
//                           + unscale[s][j] * sum_k src[r][k] * panels[s][k][j],
//
// 0 <= j < 16, the sum in the order of k. Of u8 unscale[s][j] has its place in the sum, for each
// group of rows of a panel, with which an offset is added to its numbers.
struct ProductArgs {
  // Row r is at src + (r / inner_rows) * outer_stride + (r % inner_rows) * inner_stride.
  const float* src;
  int64_t inner_rows, outer_stride, inner_stride;
  int64_t rows, k;
  DataType weights;     // f32, bf16, s8 or u8
  const float* panels;  // the first line of k rows
  int64_t panel_stride;
  int num_panels;
  const int* column;     // of each panel
  const float* unscale;  // or null: 1
  // Of u8: rows of a group, whole lines, and what is added to its numbers times `unscale`. Those of
  // group g are `g * group_stride` after the first; of all panels `columns` columns have them.
  int64_t group;
  const float* offsets;
  int64_t group_stride, columns;
  // What comes to L2 alongside: num_panels panels, as far apart, `k` rows of each; or null.
  const float* next;
  const float* init;  // may be dst; a stride of 0 gives all rows the same
  int64_t init_stride;
  float* dst;
  int64_t dst_stride;
};

// k rows of a panel as floats, row_floats apart, times scales[16] where these are not null, plus
// offsets[16] where these are.
struct WidenPanelArgs {
  DataType weights;
  const float* panel;
  int64_t k;
  const float* scales;
  float* dst;
  int64_t row_floats;
  const float* offsets;
};

struct ProductKernels {
  int tile_rows;  // the rows that share one pass over a panel
  void (*multiply)(const ProductArgs&);
  void (*widen)(const WidenPanelArgs&);
};

BD_KERNEL_TABLE(ProductKernels)

}  // namespace bd
