#include <algorithm>
#include <cstring>

#include "cc/core/concat/concat.h"

namespace bd {
namespace {

constexpr float kZeros[16] = {};

// Pixels [begin, begin + pixels) of block b of image n.
void RunUnit(const ConcatPlan& plan, const float* const* srcs, int64_t n, int64_t b, int64_t begin,
             int64_t pixels, float* dst) {
  const ConcatRun* runs = &plan.runs[plan.first_run[b]];
  const int num_runs = static_cast<int>(plan.first_run[b + 1] - plan.first_run[b]);
  const auto source = [&](const ConcatRun& run) {
    return srcs[run.input] + plan.desc.srcs[run.input].offset(n, run.src_block, begin);
  };
  dst += plan.desc.dst.offset(n, b, begin);

  // One run from lane 0, of 16 lanes or up to the tail of src, which is zero as that of dst.
  const bool to_tail = runs[0].input >= 0 && num_runs == 2 && runs[1].input < 0 &&
                       runs[0].count == plan.desc.srcs[runs[0].input].lanes_of(runs[0].src_block);
  if (runs[0].src_lane == 0 && (num_runs == 1 || to_tail)) {
    std::memcpy(dst, source(runs[0]), pixels * 16 * sizeof(float));
    return;
  }
  LaneRun lanes[16];
  for (int r = 0; r < num_runs; ++r) {
    const ConcatRun& run = runs[r];
    const bool zeros = run.input < 0;
    lanes[r] = {zeros ? kZeros : source(run) + run.src_lane, zeros ? 0 : 16, run.dst_lane,
                run.count};
  }
  plan.kernels->assemble(lanes, num_runs, pixels, dst);
}

}  // namespace

void RunConcat(const ConcatPlan& plan, const float* const* srcs, float* dst, ThreadPool& pool) {
  const TensorView& view = plan.desc.dst;
  const int64_t units = view.n() * view.blocks() * plan.chunks;
  pool.ParallelFor(plan.tasks, [&](int64_t task, int) {
    const int64_t first = task * plan.units_per_task;
    const int64_t last = std::min(units, first + plan.units_per_task);
    for (int64_t unit = first; unit < last; ++unit) {
      const int64_t block = unit / plan.chunks, begin = unit % plan.chunks * plan.chunk;
      RunUnit(plan, srcs, block / view.blocks(), block % view.blocks(), begin,
              std::min(plan.chunk, view.pixels() - begin), dst);
    }
  });
}

}  // namespace bd
