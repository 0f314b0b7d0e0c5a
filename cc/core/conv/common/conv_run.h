// One execution of a plan: what the drivers of all algorithms share.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cc/base/threads/thread_pool.h"
#include "cc/core/conv/common/conv_plan.h"
#include "cc/core/gemm/gemm_panels.h"
#include "cc/core/post_ops/post_ops.h"

namespace bd {

// Everything the tasks of an execution share.
struct ConvRun {
  const ConvPlan& plan;
  const ConvDesc& d;
  const ConvBuffers& buffers;
  const float* bias;                   // padded to whole blocks, or null
  const float* sum;                    // accumulated before the rest, of any type, or null
  TileEpilogue epilogue;               // what all tiles have in common
  const PostOpProgram* plain_program;  // the chain of a plain dst
  Scratch scratch;

  int64_t plane() const { return d.oh() * d.ow(); }
  // Block b of image n, where src or dst is blocked.
  const float* SrcBlock(int64_t n, int64_t b) const {
    return BytesFrom(
        buffers.src,
        (n * plan.src_image_stride + plan.src_block(b) * d.src.block_stride()) * plan.src_bytes);
  }
  float* DstBlock(int64_t n, int64_t b) const {
    return BytesFrom(buffers.dst, d.dst.offset(n, b, 0) * plan.tensors.dst_bytes);
  }
};

// Tasks of output rows: run_rows(image, block of dst, first row, row after the last, thread).
template <typename Fn>
void ForBlockRows(const ConvRun& run, ThreadPool& pool, Fn&& run_rows) {
  const int64_t blocks = run.plan.ocb, height = run.d.oh();
  const int64_t rows = run.d.n() * blocks * height;
  pool.ForRanges(rows, run.plan.tasks, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t at = begin, past; at < end; at = past) {
      const int64_t block = at / height;
      past = std::min(end, (block + 1) * height);
      run_rows(block / blocks, block % blocks, at - block * height, past - block * height, thread);
    }
  });
}

// A plan bound to the buffers of one execution. Both must outlive it.
class BoundConv {
 public:
  BoundConv(const ConvPlan& plan, const ConvBuffers& buffers);
  const ConvRun& run() const { return run_; }

 private:
  const BoundPostOps rest_;
  const ConvRun run_;
};

// Of tiles of output blocks [first, first + blocks), of which row 0 is `pixel` of image n; dst is
// blocked, or scratch that is.
TileEpilogue BlocksEpilogue(const ConvRun& run, int64_t first, int64_t blocks, int64_t n,
                            int64_t pixel);

// The same of a plain dst, whose tiles are row-major.
TileEpilogue PlainEpilogue(const ConvRun& run, int64_t first, int64_t blocks, int64_t n,
                           int64_t pixel);

// Output pixels [begin, end) of image n, some blocks of channels, of a plain dst.
struct PlainPart {
  int64_t n, begin, end, first_block, blocks;
};

// Stores sums [block][pixel][16] with the chain, which leaves anything there.
void StorePlain(const ConvRun& run, const PlainPart& part, float* blocks);

// The same of float32 [pixel][count], from channel `first` of pixel `pixel` of image n on.
void StorePlainRows(const ConvRun& run, int64_t n, int64_t pixel, int64_t first, int64_t pixels,
                    int64_t count, float* rows);

}  // namespace bd
