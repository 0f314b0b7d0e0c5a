// Runs depthwise convolutions: tasks are ranges of the output rows of all channel blocks.
#include <algorithm>

#include "cc/core/conv/depthwise/depthwise.h"

namespace bd {

DepthwiseBlock::DepthwiseBlock(const ConvRun& run, int64_t n, int64_t block, int64_t inputs)
    : d_(run.d), args_(), row_(DepthwiseKernelsFor(run.plan.isa).row) {
  const int64_t channel = block * kBlock, of_all = n * run.plan.ocb + block;
  dst_offset_ = of_all * run.plane() * kBlock;
  dst_ = run.d.dst.blocked() ? run.DstBlock(n, block) : nullptr;
  sum_ = run.sum == nullptr ? nullptr : run.sum + dst_offset_;
  args_.kh = d_.kh() * inputs;
  args_.weights = run.buffers.packed + channel * args_.kh * d_.kw();
  args_.kw = d_.kw();
  args_.sw = d_.sw();
  args_.dw = d_.dw();
  args_.pad_left = d_.pad_left();
  args_.iw = d_.iw();
  args_.ow = d_.ow();
  TileEpilogue& e = args_.epilogue;
  e = run.epilogue;
  e.bias = run.bias != nullptr ? run.bias + channel : nullptr;
  e.acc_scale = run.plan.epilogue.sum_scale;
  e.channel = channel;
  e.sample_channel = of_all * kBlock;
  e.valid_lanes = static_cast<int32_t>(std::min(kBlock, d_.oc() - channel));
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
  if (run.d.narrow()) return RunNarrowDepthwise(run, pool);
  const ConvDesc& d = run.d;
  const int64_t icb = run.plan.icb, tasks = run.plan.tasks, rows = d.n() * icb * d.oh();
  pool.ParallelFor(tasks, [&](int64_t t, int) {
    const int64_t end = rows * (t + 1) / tasks;
    for (int64_t at = rows * t / tasks; at < end;) {
      const int64_t block = at / d.oh(), past = std::min(end, (block + 1) * d.oh());
      DepthwiseBlock of_block(run, block / icb, block % icb);
      const float* src = run.SrcBlock(block / icb, block % icb);
      for (; at < past; ++at) {
        of_block.RunRow(at - block * d.oh(), [&](int64_t r) { return src + r * d.iw() * kBlock; });
      }
    }
  });
}

}  // namespace bd
