// Max and average pooling of blocked tensors.
//
//   PoolDesc -> MakePoolPlan -> PoolPlan (immutable) -> RunPool
//
// src is in blocks of 16 (nCw16c, nChw16c, nCdhw16c) with a zero channel tail. dst is of
// the same layout, or of a plain one if it has one pixel: [N, C]. Tails of dst are written as
// zeros. Both may be some channels of wider tensors, and of any type.
//
//   max   max over the window's valid elements; -inf where there is none
//   avg   sum over the valid elements / their number; NaN where there is none
//
// Padding never counts, in explicit padding as in SAME. Sums of uint8 that become uint8, or of one
// window that covers all pixels, are exact and rounded once.
#pragma once

#include <cstdint>
#include <string>

#include "cc/base/cpu/isa.h"
#include "cc/base/quantization.h"
#include "cc/base/threads/thread_pool.h"
#include "cc/core/pool/pool_kernel.h"
#include "cc/layout/tensor_view.h"
#include "cc/layout/window.h"

namespace bd {

struct PoolDesc {
  PoolKind kind = PoolKind::kMax;
  TensorView src, dst;
  Windows windows;  // resolved (cc/layout/window.h); dst's spatial sizes are windows' outputs
  Quantization src_quantization, dst_quantization;

  ElementType src_type() const { return {src.dtype(), src_quantization}; }
  ElementType dst_type() const { return {dst.dtype(), dst_quantization}; }

  // One window over all pixels; dst has one pixel and is dense.
  static PoolDesc Global(PoolKind kind, const TensorView& src, Layout dst_layout);
};

// Immutable once made; safe to run on many threads.
struct PoolPlan {
  PoolDesc desc;
  bool whole_plane = false;     // one window, which covers all pixels
  bool averages_bytes = false;  // which is exact up to the division
  bool bf16 = false;            // src is
  bool byte_rows = false;       // rows of bytes become rows of bytes
  bool empty_src = false;       // no window has a valid element
  int64_t inner_begin = 0;      // output columns [inner_begin, inner_end) have
  int64_t inner_end = 0;        // all their taps inside the row
  int64_t units = 0;            // output rows, or planes of src, over all blocks of all images
  int64_t tasks = 0;
  const PoolKernels* kernels = nullptr;
  Isa isa = Isa::kGeneric;
};

// Returns an empty string, or one line that names what is wrong: another layout, windows of other
// sizes than src's and dst's, padding as large as the window (TensorFlow's rule), dilation, or a
// plain dst of more than one pixel.
std::string MakePoolPlan(const PoolDesc& desc, Isa isa, PoolPlan* plan);

// src and dst are the addresses of the first blocks.
void RunPool(const PoolPlan& plan, const void* src, void* dst, ThreadPool& pool);

// The gradient of pooling by its source.
//
//   PoolDesc -> MakePoolGradPlan -> PoolGradPlan (immutable) -> RunPoolGrad
//
//   max   ddst of a window goes to the first of its elements, row by row, that is the maximum
//   avg   each valid element of a window gets ddst / their number
//
// Elements of several windows get the sum; those of none get zero.

struct PoolGradPlan {
  PoolDesc desc;
  const PoolGradKernels* kernels = nullptr;
};

// Addresses of the first blocks: src and dst of the pooling, the gradient of dst, and its result.
// The average reads neither src nor dst.
struct PoolGradArgs {
  const float *src = nullptr, *dst = nullptr, *ddst = nullptr;
  float* dsrc = nullptr;
};

// `desc` is that of the pooling, of planes (nChw16c or nCw16c). Returns an empty string, or one
// line that names what is wrong.
std::string MakePoolGradPlan(const PoolDesc& desc, Isa isa, PoolGradPlan* plan);

void RunPoolGrad(const PoolGradPlan& plan, const PoolGradArgs& args, ThreadPool& pool);

}  // namespace bd
