// Contract between the drivers of convolution and what they need beside register tiles
// (cc/core/gemm).
#ifndef CC_CORE_CONV_CONV_KERNEL_H_
#define CC_CORE_CONV_CONV_KERNEL_H_

#include <cstdint>

#include "cc/base/kernel_table.h"
#include "cc/core/post_ops/post_op_step.h"

namespace bd {

// dst[p][o] = bias[o] + sum over taps and lanes; oc <= kMaxDotChannels.
// weights: [tap][oc][16]; dst is dense.
struct DotArgs {
  const float* src;
  const int64_t* tap_offsets;
  int64_t taps;
  const float* weights;
  int64_t px, oc;
  const float* bias;
  float* dst;
};

// Copies `px` pixels of 16 floats from a source row to a strip:
// dst[p] = src[first + p * stride], zero where outside [0, size) or src null.
struct GatherArgs {
  const float* src;
  float* dst;
  int64_t px, first, stride, size;
};

// Runs the chain over px pixels of channels [first, first + count) of a plain
// dst and stores them: dst[p * channels + first + c].
struct PlainStoreArgs {
  const float* blocks;  // [block][px][16]; null: `row` already holds [px][count]
  float* row;           // px * count floats of scratch
  float* dst;           // channel 0 of the first pixel
  int64_t px, first, count, channels;
  const PostOpProgram* program;
  int64_t dst_offset, sample_offset;  // of the first pixel's channel 0
};

constexpr int kMaxDotChannels = 4;

struct ConvKernels {
  void (*dot)(const DotArgs&);
  void (*gather)(const GatherArgs&);
  void (*plain_store)(const PlainStoreArgs&);
};

BD_KERNEL_TABLE(ConvKernels)

}  // namespace bd

#endif  // CC_CORE_CONV_CONV_KERNEL_H_
