// post_ops_inl.h as a table, for the tests.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"
#include "cc/core/post_ops/post_op_step.h"

namespace bd {

struct PostOpsKernels {
  void (*blocked)(const PostOpProgram& program, float* tile, float* dst, int count,
                  int64_t dst_offset, int64_t channel, int64_t sample_channel, int valid_lanes);
  void (*plain)(const PostOpProgram& program, float* row, int64_t count, int64_t dst_offset,
                int64_t first_channel, int64_t channels, int64_t sample_offset);
};

BD_KERNEL_TABLE(PostOpsKernels)

}  // namespace bd
