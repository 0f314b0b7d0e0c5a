// Contract between drivers and the kernel that stores rows of a plain result.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"
#include "cc/base/quantization.h"
#include "cc/core/post_ops/post_op_step.h"

namespace bd {

// Runs the chain over px pixels of channels [first, first + count) of a plain
// dst and stores them: dst[p * channels + first + c].
struct PlainStoreArgs {
  // [block][px][16], blocks block_stride floats apart; null: `row` already holds [px][count].
  const float* blocks;
  int64_t block_stride;
  float* row;  // px * count floats of scratch; unused where blocks are stored as they are
  float* dst;  // channel 0 of the first pixel, of `type`: f32, bf16 or u8
  int64_t px, first, count, channels;
  const PostOpProgram* program;
  int64_t dst_offset, sample_offset;  // of the first pixel's channel 0
  ElementType type;
};

struct PlainStoreKernels {
  void (*store)(const PlainStoreArgs&);
};

BD_KERNEL_TABLE(PlainStoreKernels)

}  // namespace bd
