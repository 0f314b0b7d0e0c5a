// Contract between the kernels of all primitives and those that run their chains. A chain is code
// for some sixty functions: it is there once an instruction set, and tiles call it by their
// program.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"
#include "cc/core/post_ops/post_op_step.h"

namespace bd {

// Where `rows` rows of NHWC lie: `count` floats each, whose element i has channel
// (first_channel + i) % channels.
struct PlainRows {
  int64_t rows, stride, count;
  int64_t dst_offset, operand_step;  // of operands: element 0 of row 0, and from row to row
  int64_t first_channel, channels;
  int64_t sample_offset;  // n * channels
};

struct PostOpKernels {
  // Applies the chain to `count` consecutive 16-channel vectors (blocked layout),
  // tile[i * 16 + lane], and stores them to dst; the tile, which may be dst (and is,
  // where the chain is empty), is left with what was before the last step.
  //   dst_offset      element of dst that tile[0] is: tensor operands and sum read
  //                   operand[dst_offset + i * 16 + lane]
  //   channel         first channel of the block: a channel operand, padded to a
  //                   multiple of 16, is read at operand[channel + lane]
  //   sample_channel  n * padded channels + channel, for kSampleChannel
  //   valid_lanes     lanes from here on are set to zero at the end (16: none)
  void (*blocked)(const PostOpProgram& program, float* tile, float* dst, int count,
                  int64_t dst_offset, int64_t channel, int64_t sample_channel, int valid_lanes);

  // The same over rows, in place. Operands are not padded, and nothing outside of them is read; of
  // the rows what lies between them is changed, too, as a function is one loop over all: one of a
  // row of 16 floats alone waits for its own steps.
  void (*rows)(const PostOpProgram& program, float* first, const PlainRows& at);

  // x = x logistic(x) of n floats.
  void (*silu)(float* x, int64_t n);
};

BD_KERNEL_TABLE(PostOpKernels)

}  // namespace bd
