// What the drivers of convolution share: one execution of a plan.
#ifndef CC_CORE_CONV_CONV_RUN_H_
#define CC_CORE_CONV_CONV_RUN_H_

#include <algorithm>
#include <cstdint>

#include "cc/base/thread_pool.h"
#include "cc/core/conv/conv.h"
#include "cc/core/conv/conv_kernel.h"
#include "cc/core/gemm/gemm_panels.h"
#include "cc/core/post_ops/post_ops_bind.h"

namespace bd {

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

// The epilogue of a group's tiles, of which the first begins at `pixel` of image n.
TileEpilogue GroupEpilogue(const ConvRun& run, const OutputGroup& group, int64_t n, int64_t pixel);

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

// How the source of register tiles lies.
TileFamily FamilyOf(const ConvPlan& plan);

}  // namespace bd

#endif  // CC_CORE_CONV_CONV_RUN_H_
