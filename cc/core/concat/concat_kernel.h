// What the concatenation kernel does: it assembles blocks of 16 channels from
// runs of lanes of several source blocks.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"

namespace bd {

// Lanes [dst_lane, dst_lane + count) of each dst pixel come from the `count`
// floats at src + pixel * stride.
struct LaneRun {
  const float* src;
  int64_t stride;  // 16, or 0 for a constant block
  int32_t dst_lane, count;
};

struct ConcatKernels {
  // The runs are in order and cover lanes 0 to 15. `src` is readable up to the
  // end of the last of the `pixels` source blocks.
  void (*assemble)(const LaneRun* runs, int num_runs, int64_t pixels, float* dst);
};

BD_KERNEL_TABLE(ConcatKernels)

}  // namespace bd
