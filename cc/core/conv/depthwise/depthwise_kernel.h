// Contract between the convolution driver and the depthwise micro-kernels.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"
#include "cc/core/gemm/tiles/epilogue_kernel.h"

namespace bd {

// One row of output pixels of one channel block:
//   dst[p] = sum_{kh, kw} rows[kh][p * sw + kw * dw - pad_left] * weights[kh][kw]
// per lane, where a null row and pixels outside [0, iw) count as zero.
struct DepthwiseArgs {
  const float* const* rows;  // of the kernel's type
  const float* weights;      // [kh][kw][16]
  int64_t kh, kw, sw, dw, pad_left, iw, ow;
  float* dst;
  TileEpilogue epilogue;
};

constexpr int64_t kMaxDepthwiseRows = 64;  // largest kh; taller kernels run as tiles

struct DepthwiseKernels {
  void (*row)(const DepthwiseArgs&);
};
struct DepthwiseBf16Kernels {
  void (*row)(const DepthwiseArgs&);
};

BD_KERNEL_TABLE(DepthwiseKernels)
BD_KERNEL_TABLE_OF(DepthwiseBf16Kernels, generic, avx2, avx512, avx512_bf16)

// Depthwise rows of bytes. Products are of dwords of numbers that belong to the same channel: pairs
// of words, of two kernel rows; or, with AVX512_VNNI, quads of bytes, of four kernel columns. A
// kernel that makes quads in registers, of windows whose columns are neighbours, reads bytes.
//
// A row of dwords of one channel block, dst[column][16], of rows of bytes [iw][16] that are null
// outside of src. Column j, from column c = first + j of them, is
//   pairs   rows[0][c] and rows[1][c]
//   quads   rows[0][c + i * dw], i < 4
// and `zero` stands for what is outside.
struct DwordRowArgs {
  const uint8_t* rows[2];
  uint8_t zero;
  int64_t first, dw, iw, columns;
  float* dst;
};

// Rows of output pixels of one channel block that follow one another: of row h
//   sums[p][lane] = start[lane] + sum_{row, tap}
//                       rows[h * row_step + row * row_distance][p * step + tap * tap_step][lane]
//                       * weights[row][tap][lane]
// exact in int32, where the product is that of all numbers of two dwords, go through the epilogue
// to dst. Rows are of dwords; or of bytes, of which the quad at column c is that of columns
// c to c + 3.
struct ByteRowsArgs {
  const float* const* rows;
  bool bytes;
  const float* weights;
  const int32_t* start;
  int64_t count, taps;  // of a window
  int64_t row_step, row_distance, step, tap_step;
  int64_t oh, ow;
  int32_t* sums;  // room for those of all rows
  void* dst;
  TileEpilogue epilogue;
};

struct DepthwiseBytesKernels {
  bool quads;
  void (*dwords)(const DwordRowArgs&);
  void (*rows)(const ByteRowsArgs&);
};

BD_KERNEL_TABLE_OF(DepthwiseBytesKernels, generic, avx2, avx512, avx512_vnni)

}  // namespace bd
