// Runs depthwise convolutions: tasks are ranges of the output rows of all channel blocks.
#include "cc/core/conv/depthwise/depthwise.h"

namespace bd {

DepthwiseArgs DepthwiseArgsOf(const ConvRun& run, int64_t block, int64_t inputs) {
  const ConvDesc& d = run.d;
  DepthwiseArgs a = {};
  a.kh = d.kh() * inputs;
  a.kw = d.kw();
  a.weights = run.buffers.packed + block * kBlock * a.kh * a.kw;
  a.sw = d.sw();
  a.dw = d.dw();
  a.pad_left = d.pad_left();
  a.iw = d.iw();
  a.ow = d.ow();
  return a;
}

DepthwiseBlock::DepthwiseBlock(const ConvRun& run, int64_t n, int64_t block, int64_t inputs)
    : d_(run.d),
      args_(DepthwiseArgsOf(run, block, inputs)),
      row_(DepthwiseKernelsFor(run.plan.isa).row) {
  dst_ = run.d.dst.blocked() ? run.DstBlock(n, block) : nullptr;
  args_.epilogue = BlocksEpilogue(run, block, 1, n, 0);
  sum_ = args_.epilogue.acc_in;
  dst_offset_ = args_.epilogue.dst_offset;
}

void DepthwiseBlock::Run(int64_t h, const float* const* rows) {
  const int64_t at = h * d_.ow() * kBlock;
  args_.epilogue.dst_offset = dst_offset_ + at;
  if (sum_ != nullptr) args_.epilogue.acc_in = sum_ + at;
  RunInto(rows, dst_ + at);
}

void DepthwiseBlock::RunInto(const float* const* rows, float* dst) {
  args_.rows = rows;
  args_.dst = dst;
  row_(args_);
}

void RunDepthwise(const ConvRun& run, ThreadPool& pool) {
  if (run.d.src.dtype() == DataType::u8) return RunDepthwiseBytes(run, pool);
  if (run.d.narrow()) return RunDepthwiseBf16(run, pool);
  const int64_t row = run.d.iw() * kBlock;
  ForBlockRows(run, pool, [&](int64_t n, int64_t block, int64_t begin, int64_t end, int) {
    DepthwiseBlock of_block(run, n, block);
    const float* src = run.SrcBlock(n, block);
    for (int64_t h = begin; h < end; ++h) {
      of_block.RunRow(h, [&](int64_t r) { return src + r * row; });
    }
  });
}

}  // namespace bd
