// Contract of depthwise rows of bytes. Products are of dwords of numbers that belong to the same
// channel: pairs of words, of two kernel rows; or, with AVX512_VNNI, quads of bytes, of four kernel
// columns.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"
#include "cc/core/gemm/tiles/narrow_kernel.h"

namespace bd {

// A row of dwords of one channel block, dst[column][16], of rows of bytes [iw][16] that are null
// outside of src. Column j, from column c = first + j * every of them, is
//   pairs   rows[0][c] and rows[1][c], where every is 1
//   quads   rows[0][c + i * dw], i < 4
// and `zero` stands for what is outside.
struct DwordRowArgs {
  const uint8_t* rows[2];
  uint8_t zero;
  int64_t first, every, dw, iw, columns;
  float* dst;
};

// Sums of one row of output pixels of one channel block,
//   sums[p][lane] = start[lane] + sum_{row, tap} rows[row][p * step + tap * tap_step][lane]
//                                                * weights[row][tap][lane]
// exact in int32, where the product is that of all numbers of two dwords.
struct ByteRowArgs {
  const float* const* rows;
  const float* weights;
  const int32_t* start;
  int64_t count, taps, step, tap_step, ow;  // `count` rows
  int32_t* sums;
};

struct DepthwiseBytesKernels {
  bool quads;
  void (*dwords)(const DwordRowArgs&);
  void (*row)(const ByteRowArgs&);
  // `pixels` sums of one block through the epilogue to tile.dst; they are left with anything.
  void (*finish)(const TileArgs& tile, int32_t* sums, int64_t pixels);
};

BD_KERNEL_TABLE_OF(DepthwiseBytesKernels, generic, avx2, avx512, avx512_vnni)

}  // namespace bd
