// Contract of what depthwise convolution of bfloat16 needs beside rows of floats
// (depthwise_kernel.h): the way to them and back.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"
#include "cc/base/data_type.h"
#include "cc/core/gemm/tiles/narrow_kernel.h"

namespace bd {

// dst[i] = src[i] as a float; `count` is whole blocks.
struct WidenArgs {
  const Bfloat16* src;
  int64_t count;
  float* dst;
};

struct DepthwiseBf16Kernels {
  void (*widen)(const WidenArgs&);
  // `pixels` sums of one block, the bias in them, through the epilogue to tile.dst.
  void (*finish)(const TileArgs& tile, float* sums, int64_t pixels);
};

BD_KERNEL_TABLE(DepthwiseBf16Kernels)

}  // namespace bd
