// Runs a ConvDepthwisePlan: expands rows into a ring, runs depthwise rows out of it.
#include <algorithm>

#include "cc/base/threads/parallel_units.h"
#include "cc/core/conv/conv_depthwise/conv_depthwise.h"
#include "cc/core/conv/depthwise/depthwise.h"
#include "cc/core/conv/direct/direct.h"

namespace bd {
namespace {

// Both halves of one execution.
struct PairRun {
  const ConvDepthwisePlan& plan;
  const ConvRun& first;
  const ConvRun& depthwise;
  Scratch scratch;
};

// The ring of one group: `slots` rows of each block, of which first_row and those a multiple of
// slots after it lie in the first slot.
struct Ring {
  float* base;
  int64_t first_row, slots, row_floats;

  int64_t block_stride() const { return slots * row_floats; }
  // Rows before `r` are done with; those up to r + slots may be asked for.
  void Advance(int64_t r) {
    while (r >= first_row + slots) first_row += slots;
  }
  float* Row(int64_t block, int64_t r) const {
    const int64_t at = r - first_row;
    return base + block * block_stride() + (at < slots ? at : at - slots) * row_floats;
  }
};

// Rows [r0, r1) of group g of the 1x1 convolution into the ring, where they follow
// each other. `task` has the groups that the task will run, `from` row `first_row`.
void ExpandRows(const ConvRun& run, TaskRange task, int64_t g, int64_t r0, int64_t r1,
                int64_t first_row, ChunkSource from, const Ring& ring, int thread) {
  const ConvDesc& d = run.d;
  task.begin = r0 * d.ow();
  task.end = r1 * d.ow();
  const int64_t pixels = (r0 - first_row) * d.ow();
  from.src += pixels * kBlock;
  from.pairs.Advance(pixels);
  const TileTarget target = {ring.Row(0, r0), run.plan.Own<DirectPlan>().groups[g].first_block,
                             ring.block_stride()};
  RunChunk(run, task, g, g + 1, 0, run.plan.icb, from, target, thread);
}

// Output rows [h0, h1) of the group's channels of image n.
void DepthwiseRows(const ConvRun& run, int64_t n, const OutputGroup& group, int64_t h0, int64_t h1,
                   const Ring& ring) {
  for (int64_t b = 0; b < group.blocks; ++b) {
    DepthwiseBlock block(run, n, group.first_block + b);
    for (int64_t h = h0; h < h1; ++h) {
      block.RunRow(h, [&](int64_t r) { return ring.Row(b, r); });
    }
  }
}

// Source rows as a thread's last task left them.
struct PreparedRows {
  int64_t n = -1, begin = 0, end = 0;
  ChunkSource from;
};

// Expanded rows [r0, r1) of image n can be made of what this returns.
const ChunkSource& Prepare(const ConvRun& run, int64_t n, int64_t r0, int64_t r1, int thread,
                           PreparedRows* prepared) {
  if (prepared->n == n && prepared->begin == r0 && prepared->end == r1) return prepared->from;
  *prepared = {n, r0, r1, {run.SrcBlock(n, 0) + r0 * run.d.ow() * kBlock, {}}};
  const DirectPlan& p = run.plan.Own<DirectPlan>();
  if (p.fip()) {
    prepared->from.pairs = PreparePairs(run, prepared->from.src, 0, run.plan.icb,
                                        (r1 - r0) * run.d.ow(), thread, nullptr);
  }
  return prepared->from;
}

const PairPart& PartOf(const ConvDepthwisePlan& plan, int64_t task) {
  return plan.parts[task % static_cast<int64_t>(plan.parts.size())];
}

// Groups [u.begin, u.end) of a task's.
void PairTask(const PairRun& run, const Units& u, int thread, PreparedRows* prepared) {
  const ConvDepthwisePlan& plan = run.plan;
  const ConvDesc& d = run.depthwise.d;
  const PairPart& part = PartOf(plan, u.task);
  const TaskRange task = {u.task / static_cast<int64_t>(plan.parts.size()),
                          0,
                          0,
                          part.group_begin + u.begin,
                          part.group_begin + u.end,
                          part.group_end};
  // The expanded rows that the part's output rows read.
  const int64_t reach = (d.kh() - 1) * d.dh() - d.pad_top();  // from row h * sh to the last
  const int64_t r_begin = std::clamp<int64_t>(part.row_begin * d.sh() - d.pad_top(), 0, d.ih());
  const int64_t r_end = std::clamp((part.row_end - 1) * d.sh() + reach + 1, r_begin, d.ih());
  const ChunkSource& from = Prepare(run.first, task.n, r_begin, r_end, thread, prepared);
  for (int64_t g = task.group_begin; g < task.group_end; ++g) {
    Ring ring = {run.scratch.Grant(plan.ring, thread), r_begin, plan.step_rows * plan.ring_steps,
                 d.iw() * kBlock};
    int64_t h = part.row_begin;
    for (int64_t r = r_begin; h < part.row_end; r += plan.step_rows) {
      const int64_t r_next = std::min(r_end, r + plan.step_rows);
      ring.Advance(std::max(r_begin, h * d.sh() - d.pad_top()));
      if (r < r_next) ExpandRows(run.first, task, g, r, r_next, r_begin, from, ring, thread);
      int64_t h_next = h;
      while (h_next < part.row_end && std::min(r_end, h_next * d.sh() + reach + 1) <= r_next)
        ++h_next;
      DepthwiseRows(run.depthwise, task.n, plan.first.Own<DirectPlan>().groups[g], h, h_next, ring);
      h = h_next;
    }
  }
}

}  // namespace

void RunConvDepthwise(const ConvDepthwisePlan& plan, const ConvDepthwiseBuffers& buffers,
                      ThreadPool& pool) {
  const ConvDesc& d = plan.depthwise.desc;
  if (d.n() * d.oh() * d.ow() * d.oc() == 0) return;
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
  const int64_t tasks = d.n() * static_cast<int64_t>(plan.parts.size());
  ParallelUnits(pool, tasks, [&](UnitTaker& taker) {
    PreparedRows prepared;
    for (int64_t t; taker.NextTask(&t);) {
      const PairPart& part = PartOf(plan, t);
      taker.Publish(part.group_end - part.group_begin);
      for (Units u; taker.Next(0, 1, &u);) PairTask(run, u, taker.thread(), &prepared);
    }
    for (Units u; taker.Steal(0, 1, &u);) PairTask(run, u, taker.thread(), &prepared);
  });
}

}  // namespace bd
