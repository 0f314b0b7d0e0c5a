// What a pooling kernel does: one output row, or one whole plane, of one block
// of 16 channels. A slice is a plane of rows of one depth.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"
#include "cc/base/data_type.h"
#include "cc/base/quantization.h"

namespace bd {

enum class PoolKind : int32_t { kMax = 0, kAvg = 1 };

// The windows of an output row, and their rows that are inside, at least one, each [width][16].
struct PoolWindows {
  int64_t width;
  int64_t kernel, stride, pad;  // along the row
  int64_t out;
  int64_t row_stride, valid_rows;  // strides are elements from one to the next
};

struct PoolRow : PoolWindows {
  explicit PoolRow(const PoolWindows& windows) : PoolWindows(windows) {}

  const void* src;  // valid_slices, at least one, of such rows
  int64_t slice_stride, valid_slices;
  void* dst;                       // [out][16]
  int64_t inner_begin, inner_end;  // outputs whose taps are all inside
  // Of bytes: what src and dst stand for, which a maximum keeps as it is, and room for
  // [width][16].
  Quantization from, to;
  uint8_t* columns;
};

// One row of the gradient: what the windows of an output row give to the rows that they cover.
struct PoolGradRow : PoolWindows {
  explicit PoolGradRow(const PoolWindows& windows) : PoolWindows(windows) {}

  const float* src;
  float* dsrc;              // is added to
  const float *dst, *ddst;  // [out][16]
};

// Indexed by PoolKind.
struct PoolKernels {
  void (*row[2])(const PoolRow& row);
  // Of bytes; sums of up to kMostSummedBytes elements are exact.
  void (*byte_row[2])(const PoolRow& row);
  // Pools src [pixels][16], pixels >= 1, and stores the first `lanes` channels.
  void (*plane[2])(const float* src, int64_t pixels, float* dst, int lanes);
  // Of floats, where src is bfloat16, and a row of dst, too.
  void (*row_bf16[2])(const PoolRow& row);
  void (*plane_bf16[2])(const Bfloat16* src, int64_t pixels, float* dst, int lanes);
  // The average of the numbers that bytes stand for. Their sum is exact up to kMostBytes pixels.
  void (*average_bytes)(const uint8_t* src, const Quantization& from, int64_t pixels, float* dst,
                        int lanes);
};

// 255 of each, less a zero point, fit into int32, and into float32 without rounding.
constexpr int64_t kMostBytes = INT32_MAX / 255, kMostSummedBytes = (1 << 24) / 255;

BD_KERNEL_TABLE(PoolKernels)

struct PoolGradKernels {
  void (*row[2])(const PoolGradRow& row);
};

BD_KERNEL_TABLE(PoolGradKernels)

}  // namespace bd
