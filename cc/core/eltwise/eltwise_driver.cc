#include <algorithm>

#include "cc/core/eltwise/eltwise.h"
#include "cc/core/post_ops/post_ops_bind.h"

namespace bd {
namespace {

constexpr int64_t kBlock = 16;

// Elements [begin, end) of the tensors, one segment after the other.
void RunTask(const EltwisePlan& plan, EltwiseRange range, int64_t begin, int64_t end) {
  const TensorView& view = plan.desc.src;
  const float* const src = range.src;
  float* const dst = range.dst;
  while (begin < end) {
    const int64_t segment = begin / plan.segment_floats;
    const int64_t segment_begin = segment * plan.segment_floats;
    range.begin = begin;
    range.count = std::min(end, segment_begin + plan.segment_floats) - begin;
    if (view.blocked()) {
      const int64_t n = segment / view.blocks(), block = segment % view.blocks();
      range.src = src + n * plan.src_gap;
      range.dst = dst + n * plan.dst_gap;
      range.channel = block * kBlock;
      range.sample_channel = segment * kBlock;
      range.valid_lanes = static_cast<int32_t>(view.lanes_of(block));
      plan.kernels->blocked(range);
    } else {
      range.channel = (begin - segment_begin) % view.c();
      range.sample_channel = segment * view.c();
      plan.kernels->plain(range);
    }
    begin += range.count;
  }
}

}  // namespace

void RunEltwise(const EltwisePlan& plan, const float* src, const float* const* args, float* dst,
                ThreadPool& pool) {
  const BoundPostOps bound(plan.desc.post_ops, plan.desc.src.c(), args, dst);
  EltwiseRange range = {};
  range.program = bound.program();
  range.src = src;
  range.dst = dst;
  range.channels = plan.desc.src.c();
  pool.ParallelFor(plan.tasks, [&](int64_t task, int) {
    const int64_t begin = task * plan.task_floats;
    RunTask(plan, range, begin, std::min(plan.total_floats, begin + plan.task_floats));
  });
}

}  // namespace bd
