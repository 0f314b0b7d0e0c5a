// A strip of pixels of one image, all channels, between channels last and blocks of 16.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"

namespace bd {

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
