// What the drivers of convolution share: one execution of a plan.
#ifndef CC_CORE_CONV_CONV_RUN_H_
#define CC_CORE_CONV_CONV_RUN_H_

#include <cstdint>

#include "cc/base/thread_pool.h"
#include "cc/core/conv/conv.h"
#include "cc/core/conv/conv_kernel.h"

namespace bd {

constexpr int64_t kBlock = 16;

inline int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// One execution: everything the tasks share.
struct ConvRun {
  const ConvPlan& plan;
  const ConvDesc& d;
  const ConvKernels& kernels;
  const ConvBuffers& buffers;
  const float* bias;                   // padded to whole blocks, or null
  const float* sum;                    // accumulated before the rest, or null
  TileEpilogue epilogue;               // what all tiles have in common
  const PostOpProgram* plain_program;  // the chain of a plain dst
  Scratch scratch;

  int64_t plane() const { return d.oh * d.ow; }
  float* Strip(int thread) const { return scratch.Grant(plan.strip, thread); }
  float* Row(int thread) const { return scratch.Grant(plan.row, thread); }
};

// Calls tile(first pixel, pixels) over [0, px), in even tiles.
template <typename Fn>
void ForTiles(int64_t px, int64_t widest, Fn&& tile) {
  const int64_t tiles = (px + widest - 1) / widest;
  for (int64_t i = 0; i < tiles; ++i) {
    const int64_t p = px * i / tiles;
    tile(p, px * (i + 1) / tiles - p);
  }
}

// Spreads `rows` rows of the weights `next`, a group's row having row_floats, over
// `tiles` tiles before they are needed; memory delivers evenly then, not in bursts.
struct PrefetchShare {
  const float* next;  // null: nothing to bring
  int64_t rows, row_floats, tiles;

  void Apply(int64_t tile, TileArgs* a) const {
    a->prefetch_step = next == nullptr ? 0 : CeilDiv(row_floats, tiles);
    a->prefetch = next == nullptr ? a->weights : next + tile * rows * a->prefetch_step;
  }
};

}  // namespace bd

#endif  // CC_CORE_CONV_CONV_RUN_H_
