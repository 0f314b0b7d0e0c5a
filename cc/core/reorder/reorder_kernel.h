// Contract between the reorder drivers and their per-ISA kernels: strips of an image between
// channels last and blocks of 16, and tiles of elements from anywhere to anywhere.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"
#include "cc/base/data_type.h"
#include "cc/base/quantization.h"

namespace bd {

// A loop over elements, and how far one step of it goes.
struct ReorderLoop {
  int64_t count = 1;
  int64_t src = 0, dst = 0, scale = 0;
};

// A tile of any type to any type. Fast with cols.dst 1 and either cols.src 1 (runs of columns) or
// rows.src 1 (a transposition).
struct ReorderTile {
  const void* src = nullptr;
  void* dst = nullptr;
  ReorderLoop rows, cols;
  // What follows is for conversions: dst = scale * src + beta * dst, in float, of the numbers that
  // the stored ones stand for.
  ElementType src_type, dst_type;
  const float* scales = nullptr;  // that of the first element; null: none
  float beta = 0.f;
};

using ReorderTileKernel = void (*)(const ReorderTile& tile);

struct ReorderTileKernels {
  // The bits of elements of 1, 2 and 4 bytes.
  ReorderTileKernel copy[3];
  ReorderTileKernel convert;
};

BD_KERNEL_TABLE(ReorderTileKernels)

// A strip of pixels of one image, all channels, between channels last and blocks of 16.
struct ReorderStrip {
  const float* src;  // the strip's first pixel, in both layouts
  float* dst;
  int64_t pixels;
  int64_t channels;
  int64_t block_stride;  // floats from one channel block to the next
};

using StripKernel = void (*)(const ReorderStrip& strip);

// [0] stores through the caches. [1] streams past them; every 16 channels that it
// writes must then be a cache line: dst aligned to 64 bytes and, if it is plain,
// channels % 16 == 0.
struct StripKernels {
  StripKernel plain_to_blocked[2];
  StripKernel blocked_to_plain[2];
};

BD_KERNEL_TABLE(StripKernels)

}  // namespace bd
