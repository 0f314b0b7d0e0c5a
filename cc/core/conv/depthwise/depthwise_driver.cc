// Runs depthwise convolutions: tasks are ranges of the output rows of all channel blocks.
#include "cc/core/conv/depthwise/depthwise.h"
#include "cc/core/conv/depthwise/depthwise_bf16_kernel.h"

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
  if (d.narrow()) a.narrow = &run.plan.tensors;
  return a;
}

DepthwiseBlock::DepthwiseBlock(const ConvRun& run, int64_t n, int64_t block, int64_t inputs)
    : d_(run.d),
      args_(DepthwiseArgsOf(run, block, inputs)),
      tensors_(run.plan.tensors),
      row_(run.d.narrow() ? DepthwiseBf16KernelsFor(run.plan.isa).row
                          : DepthwiseKernelsFor(run.plan.isa).row) {
  dst_ = run.d.dst.blocked() ? run.DstBlock(n, block) : nullptr;
  args_.epilogue = BlocksEpilogue(run, block, 1, n, 0);
  sum_ = args_.epilogue.acc_in;
  dst_offset_ = args_.epilogue.dst_offset;
}

void DepthwiseBlock::Run(int64_t h, const float* const* rows) {
  const int64_t at = h * d_.ow() * kBlock;
  args_.epilogue.dst_offset = dst_offset_ + at;
  if (sum_ != nullptr) args_.epilogue.acc_in = BytesFrom(sum_, at * tensors_.sum_bytes);
  RunInto(rows, BytesFrom(dst_, at * tensors_.dst_bytes));
}

void DepthwiseBlock::RunInto(const float* const* rows, float* dst) {
  args_.rows = rows;
  args_.dst = dst;
  row_(args_);
}

void RunDepthwise(const ConvRun& run, ThreadPool& pool) {
  if (run.d.src.dtype() == DataType::u8) return RunDepthwiseBytes(run, pool);
  const int64_t row_bytes = run.d.iw() * kBlock * run.plan.src_bytes;
  ForBlockRows(run, pool, [&](int64_t n, int64_t block, int64_t begin, int64_t end, int) {
    DepthwiseBlock of_block(run, n, block);
    const float* src = run.SrcBlock(n, block);
    for (int64_t h = begin; h < end; ++h) {
      of_block.RunRow(h, [&](int64_t r) { return BytesFrom(src, r * row_bytes); });
    }
  });
}

}  // namespace bd
