// The end of every convolution kernel: what happens to sums before memory.
#ifndef CC_CORE_CONV_CONV_EPILOGUE_H_
#define CC_CORE_CONV_CONV_EPILOGUE_H_

#include <cstdint>

#include "cc/core/post_ops/post_op_step.h"

namespace bd {

// What happens to a tile between the accumulators and memory:
//   x = bias + sum + acc_scale * acc_in; clamp, or program; store.
struct TileEpilogue {
  const float* bias;    // a float a channel of the tile, or null
  const float* acc_in;  // laid out as dst, or null: partial sums or `sum`
  float acc_scale;
  int32_t clamp;
  float lo, hi;
  const PostOpProgram* program;  // null: none
  int32_t silu;                  // the program is x logistic(x) only
  int64_t dst_offset;            // of the tile's first float in tensors of dst's shape
  int64_t channel;               // first channel of the tile
  int64_t sample_channel;        // n * padded channels + channel
  int32_t valid_lanes;           // of the tile's last block
};

}  // namespace bd

#endif  // CC_CORE_CONV_CONV_EPILOGUE_H_
