// A tile of elements on its way from anywhere to anywhere, of any type to any type.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"
#include "cc/base/data_type.h"
#include "cc/base/quantization.h"

namespace bd {

// rows x cols elements; strides are in elements. Fast with dst_col 1 and either
// src_col 1 (runs of columns) or src_row 1 (a transposition).
struct ReorderTile {
  const void* src;
  void* dst;
  int64_t rows, cols;
  int64_t src_row, src_col, dst_row, dst_col;
  // What follows is for conversions: dst = scale * src + beta * dst, in float, of the numbers that
  // the stored ones stand for.
  DataType src_type, dst_type;
  const float* scales;  // that of the first element; null: none
  int64_t scale_row, scale_col;
  float beta;
  Quantization src_quantization, dst_quantization;
};

using ReorderTileKernel = void (*)(const ReorderTile& tile);

struct ReorderTileKernels {
  // The bits of elements of 1, 2 and 4 bytes.
  ReorderTileKernel copy[3];
  ReorderTileKernel convert;
};

BD_KERNEL_TABLE(ReorderTileKernels)

}  // namespace bd
