// W or U of a recurrent layer among its packed weights.
#pragma once

#include <cstdint>
#include <vector>

#include "cc/core/gemm/fip.h"
#include "cc/core/gemm/gemm_panels.h"
#include "cc/core/gemm/tiles/product_kernel.h"

namespace bd {

constexpr int kRnnPanel = kBlock;  // columns: one gate of 16 units

// Offsets are floats into the packed weights, or into what a call makes of them in scratch.
struct RnnMatrix {
  int64_t k = 0;  // rows
  bool in_scratch = false;
  DataType weights = DataType::f32;
  std::vector<Panel> panels;  // of each 16 units those of the gates
  // A float a column: what sums are to be multiplied by, and the terms of pairs; -1: there are
  // none.
  int64_t unscale = -1, terms = -1;

  // Of the source, in a plan that multiplies in pairs.
  bool in_pairs = false;
  FipRows source;

  const float* Panels(const float* base, int64_t first) const {
    return base + panels[first].offset;
  }
  // The panels to be fetched next; a number behind the last panel's stands for none, and the first
  // are fetched.
  const float* Ahead(const float* base, int64_t first) const {
    return Panels(base, first < static_cast<int64_t>(panels.size()) ? first : 0);
  }
  const float* Unscale(const float* base, int64_t first_panel) const {
    return unscale < 0 ? nullptr : base + unscale + first_panel * kRnnPanel;
  }
};

}  // namespace bd
