// Contract between the driver of transposed convolution and its per-ISA kernels.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"
#include "cc/core/post_ops/post_op_step.h"

namespace bd {

// A row of dst out of the rows of its phases: dst[x] = phase[x % phases][x / phases], then the
// chain over it.
struct InterleaveArgs {
  const float* const* phase;  // wide: the first pixel of each phase
  int64_t phases;
  int64_t px;  // of dst
  float* dst;  // the first pixel
  const PostOpProgram* program;
  int64_t dst_offset, channel, sample_channel;  // as in PostOpKernels
  int32_t valid_lanes;
  // narrow: channel c of phase p is base[offsets[p * channels + c] + t * src_step]; a pixel of dst
  // is 16 floats, or `channels` where it is plain.
  const float* base;
  const int64_t* offsets;
  int64_t src_step, channels;
  bool plain;
};

struct ConvTransposeKernels {
  void (*wide)(const InterleaveArgs&);    // 16 channels, blocked
  void (*narrow)(const InterleaveArgs&);  // all channels of dst, fewer than 16
};

BD_KERNEL_TABLE(ConvTransposeKernels)

}  // namespace bd
