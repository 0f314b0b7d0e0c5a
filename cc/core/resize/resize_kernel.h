// Contract between the resize driver and its per-ISA kernels.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"

namespace bd {

// Where an output comes from along an axis: lower + (upper - lower) * fraction.
struct ResizeTap {
  int64_t lower, upper;
  float fraction;
};

// A row of one channel block; a pixel is 16 floats.
struct ResizeRow {
  const float *lower, *upper;  // the rows of the source; nearest has the first only
  float fraction;              // between them
  const ResizeTap* columns;    // in floats
  int64_t out;                 // pixels
  int64_t factor;              // of repeat
  float* dst;
};

struct ResizeKernels {
  // Of pixels of 16, 32 and 64 bytes, which count as 4, 8 and 16 floats.
  void (*nearest[3])(const ResizeRow&);
  void (*repeat[3])(const ResizeRow&);  // every pixel `factor` times
  void (*bilinear)(const ResizeRow&);
};

BD_KERNEL_TABLE(ResizeKernels)

}  // namespace bd
