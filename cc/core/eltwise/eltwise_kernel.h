// Contract between the element-wise driver and its per-ISA kernels.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"
#include "cc/base/data_type.h"
#include "cc/base/quantization.h"
#include "cc/core/post_ops/post_op_step.h"

namespace bd {

// dst[i] = program(src[i]) for elements [begin, begin + count) of the tensors,
// all in one channel block, or in one sample of NHWC. src and dst are what element 0
// of the tensors would be if the distances between images were those of operands.
struct EltwiseRange {
  const PostOpProgram* program;
  const float* src;
  float* dst;
  int64_t begin, count;
  int64_t channel;         // blocked: the block's first; plain: that of element `begin`
  int64_t sample_channel;  // first of the block, or of the sample, in [N, C] operands
  int64_t channels;        // plain
  int32_t valid_lanes;     // blocked; count is a multiple of 16
};

// A blocked range of unsigned bytes, of which `range` says all but src and dst: those of its first
// element.
struct EltwiseBytes {
  EltwiseRange range;
  const uint8_t* src;
  uint8_t* dst;
  Quantization from, to;
};

// The same of bfloat16.
struct EltwiseBf16 {
  EltwiseRange range;
  const Bfloat16* src;
  Bfloat16* dst;
};

struct EltwiseKernels {
  void (*blocked)(const EltwiseRange&);
  void (*plain)(const EltwiseRange&);
  // Does nothing and returns false where the program is no affine map by channel, perhaps clamped.
  bool (*affine_bytes)(const EltwiseBytes&);
  bool (*affine_bf16)(const EltwiseBf16&);
};

BD_KERNEL_TABLE_OF(EltwiseKernels, generic, avx2, avx512, avx512_bf16)

}  // namespace bd
