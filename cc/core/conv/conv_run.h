// What the drivers of convolution share: one execution of a plan.
#ifndef CC_CORE_CONV_CONV_RUN_H_
#define CC_CORE_CONV_CONV_RUN_H_

#include <algorithm>
#include <cstdint>

#include "cc/base/thread_pool.h"
#include "cc/core/conv/conv.h"
#include "cc/core/conv/conv_kernel.h"
#include "cc/core/post_ops/post_ops_bind.h"

namespace bd {

constexpr int64_t kBlock = 16;

inline int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// From one image of a blocked tensor to the next; image_blocks as in ConvDesc.
inline int64_t ImageFloats(int64_t image_blocks, int64_t own_blocks, int64_t plane) {
  return (image_blocks > 0 ? image_blocks : own_blocks) * plane * kBlock;
}

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
  // Block b of image n, where src or dst is blocked.
  const float* SrcBlock(int64_t n, int64_t b) const {
    return buffers.src + n * plan.src_image + b * d.ih * d.iw * kBlock;
  }
  float* DstBlock(int64_t n, int64_t b) const {
    return buffers.dst + n * plan.dst_image + b * plan.dst_plane * kBlock;
  }
  float* Strip(int thread) const { return scratch.Grant(plan.strip, thread); }
  float* Terms(int thread) const { return scratch.Grant(plan.terms, thread); }
  float* Row(int thread) const { return scratch.Grant(plan.row, thread); }
};

// A plan bound to the buffers of one execution. Both must outlive it.
class BoundConv {
 public:
  BoundConv(const ConvPlan& plan, const ConvBuffers& buffers);
  const ConvRun& run() const { return run_; }

 private:
  const BoundPostOps rest_;
  const ConvRun run_;
};

// A task's share, or a part of it: output pixels [begin, end) of image n, output groups
// [group_begin, group_end). The weights of groups up to `ahead_end` are to be brought along.
struct TaskRange {
  int64_t n, begin, end, group_begin, group_end, ahead_end;
};

TaskRange Locate(const ConvRun& run, int64_t task);

// Rows of a plain dst with the chain; `blocks` null: they are in `row` already.
void StorePlain(const ConvRun& run, const TaskRange& r, const float* blocks, float* row);

// Where a task's tiles go: its first pixel of output block `first_block`, and the
// distance of blocks. dst itself, or scratch.
struct TileTarget {
  float* base;
  int64_t first_block, block_stride;
};

// The epilogue of all tiles of a group of image n; acc_in and dst_offset are a tile's.
TileEpilogue GroupEpilogue(const ConvRun& run, const OutputGroup& group, int64_t n);

// A K chunk of a task's source: the first pixel as the taps see it, and of paired
// products its terms, and the power of two that weights take.
struct ChunkSource {
  const float* src = nullptr;
  const float* pixel_terms = nullptr;
  int exponent = 0;
  bool zeros = false;  // nothing but zeros, of paired products
};

// All tiles of one K chunk of a task: source blocks [b0, b1), output groups
// [g0, g1), the task's pixels. The weights of the task's next group come to L2 alongside.
void RunChunk(const ConvRun& run, const TaskRange& r, int64_t g0, int64_t g1, int64_t b0,
              int64_t b1, const ChunkSource& from, const TileTarget& target, int thread);

// Pixels of a group's widest tile.
int64_t TilePixels(const ConvPlan& plan, const OutputGroup& group);

// Maxima of the result [n, ocb, oh, ow, 16] that kernels made; a task is a row of dst.
void PoolWhole(const ConvPlan& plan, const float* whole, float* dst, ThreadPool& pool);

// [0, px) in even tiles of at most `widest` pixels; its divisions take as long as 80 multiply-adds,
// so it is made once for many passes.
struct EvenTiles {
  int64_t count, narrow, wide;  // tiles, pixels of a narrow one, how many are a pixel wider

  EvenTiles(int64_t px, int64_t widest)
      : count(CeilDiv(px, widest)),
        narrow(px / std::max<int64_t>(1, count)),
        wide(px - count * narrow) {}

  // Calls run(first pixel, pixels of a tile, tiles): once for the wide ones, once for the others.
  template <typename Fn>
  void ForRuns(Fn&& run) const {
    if (wide > 0) run(0, narrow + 1, wide);
    if (wide < count) run(wide * (narrow + 1), narrow, count - wide);
  }
};

// Spreads `rows` rows of the weights `next`, a group's row having row_floats, over
// `tiles` tiles before they are needed; memory delivers evenly then, not in bursts.
struct PrefetchShare {
  const float* next;  // null: nothing to bring
  int64_t rows, row_floats, tiles;

  void Start(TileArgs* a) const {
    a->prefetch_step = next == nullptr ? 0 : CeilDiv(row_floats, tiles);
    a->prefetch = next == nullptr ? a->weights : next;
  }
  void Pass(int64_t tiles_done, TileArgs* a) const {
    a->prefetch += tiles_done * rows * a->prefetch_step;
  }
};

}  // namespace bd

#endif  // CC_CORE_CONV_CONV_RUN_H_
