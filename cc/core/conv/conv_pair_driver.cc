// Runs a ConvPairPlan: expands rows into a ring, runs depthwise rows out of it.
#include <algorithm>

#include "cc/core/conv/conv_depthwise_kernel.h"
#include "cc/core/conv/conv_pair.h"
#include "cc/core/conv/conv_paired.h"
#include "cc/core/conv/conv_run.h"

namespace bd {
namespace {

// Both halves of one execution.
struct PairRun {
  const ConvPairPlan& plan;
  const ConvRun& first;
  const ConvRun& depthwise;
  Scratch scratch;
};

// The ring of one group: row r of the expanded image lies in slot
// (r - first_row) % slots of each block.
struct Ring {
  float* base;
  int64_t first_row, slots, row_floats;

  int64_t block_stride() const { return slots * row_floats; }
  float* Row(int64_t block, int64_t r) const {
    return base + block * block_stride() + (r - first_row) % slots * row_floats;
  }
};

// Rows [r0, r1) of group g of the 1x1 convolution into the ring, where they follow
// each other. `task` has the groups that the task will run, `from` the ring's first row.
void ExpandRows(const ConvRun& run, TaskRange task, int64_t g, int64_t r0, int64_t r1,
                ChunkSource from, const Ring& ring, int thread) {
  const ConvDesc& d = run.d;
  task.begin = r0 * d.ow;
  task.end = r1 * d.ow;
  const int64_t pixels = (r0 - ring.first_row) * d.ow;
  from.src += pixels * kBlock;
  if (from.pixel_terms != nullptr) from.pixel_terms += pixels;
  const TileTarget target = {ring.Row(0, r0), run.plan.groups[g].first_block, ring.block_stride()};
  RunChunk(run, task, g, g + 1, 0, run.plan.icb, from, target, thread);
}

// Output rows [h0, h1) of the group's channels of image n.
void DepthwiseRows(const ConvRun& run, int64_t n, const OutputGroup& group, int64_t h0, int64_t h1,
                   const Ring& ring) {
  const ConvDesc& d = run.d;
  const float* rows[kMaxDepthwiseRows];
  for (int64_t b = 0; b < group.blocks; ++b) {
    for (int64_t h = h0; h < h1; ++h) {
      for (int64_t k = 0; k < d.kh; ++k) {
        const int64_t r = h * d.sh + k * d.dh - d.pad_top;
        rows[k] = r >= 0 && r < d.ih ? ring.Row(b, r) : nullptr;
      }
      RunDepthwiseRow(run, n * run.plan.icb + group.first_block + b, h, rows);
    }
  }
}

void PairTask(const PairRun& run, int64_t index, int thread) {
  const ConvPairPlan& plan = run.plan;
  const ConvDesc& d = run.depthwise.d;
  const int64_t parts = static_cast<int64_t>(plan.parts.size());
  const PairPart& part = plan.parts[index % parts];
  TaskRange task = {};
  task.n = index / parts;
  task.group_begin = part.group_begin;
  task.group_end = part.group_end;
  // The expanded rows that the part's output rows read.
  const int64_t reach = (d.kh - 1) * d.dh - d.pad_top;  // from row h * sh to the last
  const int64_t r_begin = std::max<int64_t>(0, part.row_begin * d.sh - d.pad_top);
  const int64_t r_end = std::clamp((part.row_end - 1) * d.sh + reach + 1, r_begin, d.ih);
  const Ring ring = {run.scratch.Grant(plan.ring, thread), r_begin,
                     plan.step_rows * plan.ring_steps, d.iw * kBlock};
  ChunkSource from = {run.first.SrcBlock(task.n, 0) + r_begin * d.iw * kBlock};
  if (plan.first.packing.paired) {
    PreparePaired(run.first, 0, plan.first.icb, (r_end - r_begin) * d.iw, run.first.Terms(thread),
                  &from);
  }
  for (int64_t g = task.group_begin; g < task.group_end; ++g) {
    int64_t h = part.row_begin;
    for (int64_t r = r_begin; h < part.row_end; r += plan.step_rows) {
      const int64_t r_next = std::min(r_end, r + plan.step_rows);
      if (r < r_next) ExpandRows(run.first, task, g, r, r_next, from, ring, thread);
      int64_t h_next = h;
      while (h_next < part.row_end && std::min(r_end, h_next * d.sh + reach + 1) <= r_next)
        ++h_next;
      DepthwiseRows(run.depthwise, task.n, plan.first.groups[g], h, h_next, ring);
      h = h_next;
    }
  }
}

}  // namespace

void RunConvPair(const ConvPairPlan& plan, const ConvPairBuffers& buffers, ThreadPool& pool) {
  const ConvDesc& d = plan.depthwise.desc;
  if (d.n * d.oh * d.ow * d.oc == 0) return;
  const Scratch scratch(buffers.scratch);
  float* between = scratch.Grant(plan.between);
  const ConvBuffers first = {buffers.src, buffers.first_packed, buffers.first_args, between,
                             scratch.Grant(plan.first_scratch)};
  const ConvBuffers depthwise = {between, buffers.depthwise_packed, buffers.depthwise_args,
                                 buffers.dst, scratch.Grant(plan.depthwise_scratch)};
  if (!plan.fused) {
    RunConv(plan.first, first, pool);
    return RunConv(plan.depthwise, depthwise, pool);
  }
  const BoundConv bound_first(plan.first, first), bound_depthwise(plan.depthwise, depthwise);
  const PairRun run = {plan, bound_first.run(), bound_depthwise.run(), scratch};
  const int64_t tasks = d.n * static_cast<int64_t>(plan.parts.size());
  pool.ParallelFor(tasks, [&](int64_t t, int thread) { PairTask(run, t, thread); });
}

}  // namespace bd
