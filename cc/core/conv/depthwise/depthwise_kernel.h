// Contract between the convolution driver and the depthwise micro-kernels.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"
#include "cc/core/gemm/tiles/narrow_kernel.h"

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
  const NarrowTensors* narrow;  // types of dst and acc_in, where these are not float
};

constexpr int64_t kMaxDepthwiseRows = 64;  // largest kh; taller kernels run as tiles

struct DepthwiseKernels {
  void (*row)(const DepthwiseArgs&);
};

BD_KERNEL_TABLE(DepthwiseKernels)

}  // namespace bd
