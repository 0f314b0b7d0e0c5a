// W or U of a recurrent layer among its packed weights, and products of rows with it: by tiles of
// rows that read several panels at a time, of low precision too, and, of several rows, two products
// of a sum at a time (fip.h).
#pragma once

#include <cstdint>
#include <vector>

#include "cc/base/cpu/isa.h"
#include "cc/base/memory/scratch.h"
#include "cc/core/gemm/fip.h"
#include "cc/core/gemm/gemm_panels.h"
#include "cc/core/gemm/tiles/product_kernel.h"

namespace bd {

constexpr int kRnnPanel = kBlock;  // columns: one gate of 16 units

// How a plan multiplies the rows of a source.
enum class RnnRows {
  kFloats,    // as they lie
  kPairs,     // brought into pairs
  kBfloat16,  // rounded, two numbers a dword
};

// Offsets are floats into the packed weights, or into what a call makes of them in scratch.
struct RnnMatrix {
  int64_t k = 0;  // rows
  bool in_scratch = false;
  DataType weights = DataType::f32;
  std::vector<Panel> panels;  // of each 16 units those of the gates
  // Into the packed weights, a float a column: what sums are to be multiplied by, and the terms of
  // pairs; -1: there are none.
  int64_t unscale = -1, terms = -1;

  RnnRows rows = RnnRows::kFloats;
  FipRows pairs;
  ScratchPiece<float> rounded;  // [copy][row][rounded_stride()]

  bool prepares() const { return rows != RnnRows::kFloats; }
  // Dwords of a row that is rounded, and of the room for it: rows of a power of two would share
  // sets of L1.
  int64_t dwords() const { return CeilDiv(k, 2); }
  int64_t rounded_stride() const { return dwords() + kBlock; }

  // Copies of up to `count` rows of the source, as they are multiplied.
  void BookRows(RnnRows as, int64_t count, int64_t copies, ScratchBook* book);
  // Brings the rows row_at(0) .. row_at(count - 1) of k floats into copy `copy`.
  void PrepareRows(Isa isa, const Scratch& scratch, int64_t copy, int64_t count,
                   FunctionRef<const float*(int64_t)> row_at) const;

  const float* Panels(const float* base, int64_t first) const {
    return base + panels[first].offset;
  }
  // The panels to be fetched next; a number after the last panel's stands for none, and the first
  // are fetched.
  const float* Ahead(const float* base, int64_t first) const {
    return Panels(base, first < static_cast<int64_t>(panels.size()) ? first : 0);
  }
  const float* Unscale(const float* packed, int64_t first_panel) const {
    return unscale < 0 ? nullptr : packed + unscale + first_panel * kRnnPanel;
  }
};

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
  const float* ahead;  // the panel that is needed after these; null: nothing comes to L2
  const float* init;
  int64_t init_stride;
  float* dst;
  int64_t dst_stride;
};
void MultiplyPrepared(const RnnRowsArgs& args);

// A loop of its own, not the one over panels (cc/core/gemm), which takes longer for the few rows of
// a step. Panels from `first_panel` on, and after them come those from `next_panel` on; of `args`,
// k and what says where weights are follow from the matrix.
void MultiplyByTiles(const ProductKernels& kernels, const RnnMatrix& matrix, const float* base,
                     int first_panel, int next_panel, ProductArgs args);

}  // namespace bd
