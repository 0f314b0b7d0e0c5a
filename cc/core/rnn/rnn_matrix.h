// W or U of a recurrent layer among its packed weights.
#pragma once

#include <cstdint>
#include <vector>

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
  // The panels to be fetched next; a number behind the last panel's stands for none, and the first
  // are fetched.
  const float* Ahead(const float* base, int64_t first) const {
    return Panels(base, first < static_cast<int64_t>(panels.size()) ? first : 0);
  }
  const float* Unscale(const float* packed, int64_t first_panel) const {
    return unscale < 0 ? nullptr : packed + unscale + first_panel * kRnnPanel;
  }
};

}  // namespace bd
