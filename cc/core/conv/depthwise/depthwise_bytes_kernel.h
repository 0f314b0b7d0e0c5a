// Contract of depthwise rows of bytes: products of words of 16 bits, two kernel rows at a time.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"
#include "cc/core/gemm/tiles/narrow_kernel.h"

namespace bd {

// Two rows of bytes of one channel block as pairs of words: dst[column][16][2], of which `left`
// columns and those behind the `inside` ones are `zero`, as is a row that is null.
struct RowPairArgs {
  const uint8_t* rows[2];
  uint8_t zero;
  int64_t left, inside, columns;
  int16_t* dst;
};

// Sums of one row of output pixels of one channel block,
//   sums[p][lane] = start[lane] + sum_{pair, kw, i} pairs[pair][p * sw + kw * dw][lane][i]
//                                                   * weights[pair][kw][lane][i]
// exact in int32.
struct ByteRowArgs {
  const int16_t* const* pairs;
  const int16_t* weights;
  const int32_t* start;
  int64_t count, kw, sw, dw, ow;  // `count` pairs
  int32_t* sums;
};

struct DepthwiseBytesKernels {
  void (*pair)(const RowPairArgs&);
  void (*row)(const ByteRowArgs&);
  // `pixels` sums of one block through the epilogue to tile.dst; they are left with anything.
  void (*finish)(const TileArgs& tile, int32_t* sums, int64_t pixels);
};

BD_KERNEL_TABLE(DepthwiseBytesKernels)

}  // namespace bd
