// What a squeeze-and-excitation kernel does: some channels of one image.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"
#include "cc/core/post_ops/post_op_step.h"

namespace bd {

// sums[r] = sum over channels c of mean(src[c]) * weights[c][r]
struct ReduceArgs {
  const float* src;  // [ceil(channels / 16)][pixels][16]
  int64_t pixels, channels, squeezed;
  const float* weights;  // [channels][squeezed]
  float* mean;           // scratch, channels rounded up to 16
  float* sums;           // [squeezed]
  // What the channels' part of the second product will read is brought closer during
  // the means: [squeezed] rows of `channels` floats; null: nothing to bring.
  const float* expand_weights;
  int64_t expand_stride;  // from one row to the next
};

// hidden = f(bias + all sums); scales[c] = g(bias[c] + sum over r of hidden[r] * weights[r][c])
// and, where src is given, dst[c] = src[c] * scales[c]
struct ExpandArgs {
  const float* sums;  // [splits][squeezed]
  int64_t splits, squeezed;
  const float* reduce_bias;
  const PostOpProgram* reduce_program;
  float* hidden;  // scratch, [squeezed]
  const float* weights;
  int64_t weights_stride;  // from one r to the next
  const float* bias;
  const PostOpProgram* program;
  int64_t channels;  // those computed
  int64_t stored;    // and stored: the rest is zero
  float* scales;
  const float* src;  // [ceil(channels / 16)][pixels][16]; null: scales are all
  int64_t pixels;
  float* dst;  // as src, and may be src
};

struct SqueezeExciteKernels {
  void (*reduce)(const ReduceArgs&);
  void (*expand)(const ExpandArgs&);
};

BD_KERNEL_TABLE(SqueezeExciteKernels)

}  // namespace bd
