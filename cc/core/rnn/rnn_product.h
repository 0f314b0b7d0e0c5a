// Products of rows with packed weights: by tiles of rows that read several panels at a time, narrow
// ones too, and, of several rows, two products of a sum at a time (fip.h).
#pragma once

#include <cstdint>

#include "cc/base/cpu/isa.h"
#include "cc/base/memory/scratch.h"
#include "cc/core/gemm/gemm_panels.h"
#include "cc/core/rnn/rnn_matrix.h"

namespace bd {

// dst[r][column[i]..] = init + rows [first_row, first_row + rows) of a prepared source times panels
// [first_panel, first_panel + num_panels); an init_stride of 0 gives all rows the same.
struct RnnRowsArgs {
  Isa isa;
  const RnnMatrix* matrix;
  const float* base;    // of the matrix's panels
  const float* packed;  // of its scales and terms
  const float* scales;  // of bytes, or null
  const Scratch* scratch;
  int64_t copy, first_row, rows;
  int64_t first_panel, num_panels;
  const int* column;
  const float* behind;  // the panel that is needed after these; null: nothing comes to L2
  const float* init;
  int64_t init_stride;
  float* dst;
  int64_t dst_stride;
};
void MultiplyPrepared(const RnnRowsArgs& args);

// A loop of its own, not the one over panels (cc/core/gemm), which takes longer for the few rows of
// a step. Panels from `first_panel` on, and behind them come those from `next_panel` on; of `args`,
// k and what says where weights are follow from the matrix.
void MultiplyByTiles(const ProductKernels& kernels, const RnnMatrix& matrix, const float* base,
                     int first_panel, int next_panel, ProductArgs args);

}  // namespace bd
