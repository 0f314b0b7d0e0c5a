// Contract between the driver of backward weights and its per-ISA register tiles.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"

namespace bd {

// Floats from a pixel to the next one of a row, from a row to the next, from an image to the next.
struct PixelStrides {
  int64_t px = 0, row = 0, image = 0;
};

// sum over images, rows, pixels p of src[p][r] ddst[p][lane] for r < the tile's rows.
struct BackwardWeightsTile {
  const float* src;
  const float* ddst;
  PixelStrides src_step, ddst_step;
  int64_t images, rows, px;
  float* dweights;       // row 0
  int64_t dweights_row;  // floats from row to row
  int32_t lanes;         // columns of dweights, at most 16; nothing is read or written beyond them,
                         // but whole blocks of ddst by `tile`
  int32_t add;           // to what dweights holds
};

constexpr int kMaxWeightRows = 16;

struct BackwardWeightsKernels {
  int max_rows;
  // By rows - 1.
  void (*tile[kMaxWeightRows])(const BackwardWeightsTile&);
  // Reads only `lanes` floats of a pixel of ddst.
  void (*narrow_tile[kMaxWeightRows])(const BackwardWeightsTile&);
  // One row, sum of src[p][lane] ddst[p][lane].
  void (*depthwise)(const BackwardWeightsTile&);
  // to[i] += from[i].
  void (*add)(const float* from, int64_t floats, float* to);
};

BD_KERNEL_TABLE(BackwardWeightsKernels)

}  // namespace bd
