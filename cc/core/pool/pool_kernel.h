// What a pooling kernel does: one output row, or one whole plane, of one block
// of 16 channels.
#ifndef CC_CORE_POOL_POOL_KERNEL_H_
#define CC_CORE_POOL_POOL_KERNEL_H_

#include <cstdint>

#include "cc/base/kernel_table.h"

namespace bd {

enum class PoolKind : int32_t { kMax = 0, kAvg = 1 };

struct PoolRow {
  const float* src;    // [valid_rows][width][16], the window's rows inside the plane
  float* dst;          // [out][16]
  int64_t row_stride;  // floats from one src row to the next
  int64_t valid_rows;  // at least 1
  int64_t width;
  int64_t kernel, stride, pad;     // along the row
  int64_t inner_begin, inner_end;  // outputs whose taps are all inside
  int64_t out;
};

// Indexed by PoolKind.
struct PoolKernels {
  void (*row[2])(const PoolRow& row);
  // Pools src [pixels][16], pixels >= 1, and stores the first `lanes` channels.
  void (*plane[2])(const float* src, int64_t pixels, float* dst, int lanes);
};

BD_KERNEL_TABLE(PoolKernels)

}  // namespace bd

#endif  // CC_CORE_POOL_POOL_KERNEL_H_
