// Depthwise convolutions of bfloat16: rows of src become floats, each once for all rows of dst that
// read it, and rows of float sums become rows of dst.
#include <vector>

#include "cc/core/conv/depthwise/depthwise.h"
#include "cc/core/conv/depthwise/depthwise_bf16_kernel.h"

namespace bd {
namespace {

// Output rows of one channel block.
class Bf16Rows {
 public:
  Bf16Rows(const ConvRun& run, int64_t n, int64_t block, int thread)
      : run_(run),
        d_(run.d),
        kernels_(DepthwiseBf16KernelsFor(run.plan.isa)),
        rows_(DepthwiseKernelsFor(run.plan.isa)),
        own_(run.plan.Own<DepthwisePlan>()),
        ring_(run.scratch.Grant(own_.ring, thread)),
        sums_(run.scratch.Grant(own_.sums, thread)),
        held_(own_.ring_rows, -1),
        n_(n),
        block_(block),
        sum_args_(DepthwiseArgsOf(run, block, 1)),
        tile_() {
    sum_args_.dst = sums_;
    sum_args_.epilogue.valid_lanes = kBlock;
    if (run_.bias != nullptr) sum_args_.epilogue.bias = run_.bias + block * kBlock;
    tile_.narrow = &run_.plan.tensors;
  }

  void Run(int64_t h) {
    const float* rows[kMaxDepthwiseRows];
    int64_t r = h * d_.sh() - d_.pad_top();
    for (int64_t k = 0; k < d_.kh(); ++k, r += d_.dh()) {
      rows[k] = r >= 0 && r < d_.ih() ? Widened(r) : nullptr;
    }
    sum_args_.rows = rows;
    rows_.row(sum_args_);
    tile_.epilogue = BlocksEpilogue(run_, block_, 1, n_, h * d_.ow());
    tile_.dst =
        BytesFrom(run_.DstBlock(n_, block_), h * d_.ow() * kBlock * run_.plan.tensors.dst_bytes);
    kernels_.finish(tile_, sums_, d_.ow());
  }

 private:
  // A row of src; those of a window are all there at once.
  const float* Widened(int64_t r) {
    const int64_t slot = r % own_.ring_rows, count = d_.iw() * kBlock;
    float* const to = ring_ + slot * count;
    if (held_[slot] == r) return to;
    held_[slot] = r;
    const float* src = BytesFrom(run_.SrcBlock(n_, block_), r * count * run_.plan.src_bytes);
    kernels_.widen({reinterpret_cast<const Bfloat16*>(src), count, to});
    return to;
  }

  const ConvRun& run_;
  const ConvDesc& d_;
  const DepthwiseBf16Kernels& kernels_;
  const DepthwiseKernels& rows_;
  const DepthwisePlan& own_;
  float* const ring_;
  float* const sums_;
  std::vector<int64_t> held_;  // the row in each slot of the ring, or -1
  const int64_t n_, block_;
  DepthwiseArgs sum_args_;
  TileArgs tile_;
};

}  // namespace

void RunDepthwiseBf16(const ConvRun& run, ThreadPool& pool) {
  ForBlockRows(run, pool, [&](int64_t n, int64_t block, int64_t begin, int64_t end, int thread) {
    Bf16Rows of_block(run, n, block, thread);
    for (int64_t h = begin; h < end; ++h) of_block.Run(h);
  });
}

}  // namespace bd
