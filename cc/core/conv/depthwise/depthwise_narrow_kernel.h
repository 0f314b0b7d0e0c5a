// Contract of what narrow depthwise convolution needs beside rows of floats (depthwise_kernel.h):
// the way to them and back.
#ifndef CC_CORE_CONV_DEPTHWISE_DEPTHWISE_NARROW_KERNEL_H_
#define CC_CORE_CONV_DEPTHWISE_DEPTHWISE_NARROW_KERNEL_H_

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"
#include "cc/base/quantization.h"
#include "cc/core/gemm/tiles/narrow_kernel.h"

namespace bd {

// dst[i] = src[i] as a float, of bytes less the zero point; `count` is whole blocks.
struct WidenArgs {
  DataType type;  // bf16 or u8
  int32_t zero_point;
  const void* src;
  int64_t count;
  float* dst;
};

struct DepthwiseNarrowKernels {
  void (*widen)(const WidenArgs&);
  // `pixels` sums of one block at `sums` through the epilogue to tile.dst. Those of bytes are whole
  // numbers, which are multiplied by tile.fip.unscale; of others that is null, and the bias is in
  // them.
  void (*finish)(const TileArgs& tile, float* sums, int64_t pixels);
};

BD_KERNEL_TABLE(DepthwiseNarrowKernels)

}  // namespace bd

#endif  // CC_CORE_CONV_DEPTHWISE_DEPTHWISE_NARROW_KERNEL_H_
