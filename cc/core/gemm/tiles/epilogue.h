// The end of every register tile: what happens to sums before memory.
#pragma once

#include <cstdint>

#include "cc/core/post_ops/post_op_step.h"

namespace bd {

// What happens to a tile between the accumulators and memory:
//   x = bias + sum + acc_scale * acc_in; clamp, or program; store.
//
// C is blocked: [block][row][16], rows 16 floats apart, a last block stored whole, its tail
// zero. Or it is row-major: rows are dst_step floats apart, blocks 16, and of the last block
// only valid_lanes are read and written.
struct TileEpilogue {
  const float* bias = nullptr;    // a float a column of the tile's whole blocks, or null
  const float* acc_in = nullptr;  // or null: partial sums, or a tensor to add
  float acc_scale = 0.f;
  int32_t clamp = 0;
  float lo = 0.f, hi = 0.f;
  const PostOpProgram* program = nullptr;  // null: none
  int32_t silu = 0;                        // the program is x logistic(x) only
  int32_t row_major = 0;
  int64_t dst_offset = 0;  // of the tile's first float in tensors of C's shape
  int64_t channel = 0;     // first column of the tile
  int64_t sample_channel =
      0;                    // of the sample: n * padded columns + channel; row-major: n * channels
  int64_t channels = 0;     // row-major: of a row of the operands of `program`
  int32_t valid_lanes = 0;  // of the tile's last block
  // Floats from a row to the next: of C, of acc_in and of tensors of C's shape; from a block of
  // acc_in to the next.
  int64_t dst_step = 16, acc_step = 16, operand_step = 16;
  int64_t acc_block_stride = 0;
};

}  // namespace bd
