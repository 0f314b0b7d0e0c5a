// Runs tasks of register tiles: tiles or dots over strips.
#include <algorithm>

#include "cc/base/threads/parallel_units.h"
#include "cc/core/conv/direct/direct.h"
#include "cc/core/conv/direct/direct_kernel.h"

namespace bd {
namespace {

TaskRange Locate(const ConvRun& run, int64_t task) {
  const DirectPlan& p = run.plan.Own<DirectPlan>();
  const int64_t split = task % p.group_splits, strip = task / p.group_splits % p.strips;
  const int64_t count = p.groups.size();
  TaskRange r;
  r.n = task / p.group_splits / p.strips;
  r.begin = strip * p.strip_pixels;
  r.end = std::min(run.plane(), r.begin + p.strip_pixels);
  r.group_begin = count * split / p.group_splits;
  r.ahead_end = r.group_end = count * (split + 1) / p.group_splits;
  return r;
}

PlainPart PlainPartOf(const ConvRun& run, const TaskRange& r) {
  const DirectPlan& p = run.plan.Own<DirectPlan>();
  const int64_t first = p.groups[r.group_begin].first_block;
  const OutputGroup& last = p.groups[r.group_end - 1];
  return {r.n, r.begin, r.end, first, last.first_block + last.blocks - first};
}

// What a thread has brought within reach of the taps: source blocks [b0, b1) of output pixels
// [begin, end) of image n.
struct PreparedSource {
  int64_t n = -1, begin = 0, end = 0, b0 = 0, b1 = 0;
  ChunkSource from;

  bool Has(const TaskRange& r, int64_t first, int64_t last) const {
    return n == r.n && begin <= r.begin && r.end <= end && b0 == first && b1 == last;
  }
};

// Source blocks [b0, b1) of a task or a part of it; `exponent` as for PreparePairs.
ChunkSource Prepare(const ConvRun& run, const TaskRange& r, int64_t b0, int64_t b1, int thread,
                    PreparedSource* prepared, const int* exponent = nullptr) {
  const DirectPlan& p = run.plan.Own<DirectPlan>();
  if (!prepared->Has(r, b0, b1)) {
    *prepared = {r.n, r.begin, r.end, b0, b1, {SourceFor(run, r, b0, b1, thread), {}}};
    ChunkSource& whole = prepared->from;
    if (p.fip()) {
      whole.pairs = PreparePairs(run, whole.src, b0, b1, r.end - r.begin, thread, exponent);
    }
  }
  ChunkSource from = prepared->from;
  const int64_t pixels = r.begin - prepared->begin;
  const int64_t units = p.by_row ? pixels / run.d.ow() * p.row_stride : pixels * p.px_stride;
  from.src = BytesFrom(from.src, units * p.unit);
  from.pairs.Advance(pixels);
  return from;
}

// Output groups that read the same source share its strip: all of them, but for grouped
// convolution, where each reads blocks of its own.
void RunChunks(const ConvRun& run, const TaskRange& r, const TileTarget& target, int thread,
               PreparedSource* prepared) {
  const DirectPlan& p = run.plan.Own<DirectPlan>();
  const bool shared = run.d.groups == 1 || !p.blocked();
  const int64_t together = shared ? r.group_end - r.group_begin : 1;
  for (int64_t g = r.group_begin; g < r.group_end; g += together) {
    const OutputGroup& group = p.groups[g];
    for (int64_t b0 = group.icb_begin; b0 < group.icb_end; b0 += p.icb_chunk) {
      const int64_t b1 = std::min(group.icb_end, b0 + p.icb_chunk);
      const ChunkSource from = Prepare(run, r, b0, b1, thread, prepared);
      RunChunk(run, r, g, g + together, b0, b1, from, target, thread);
    }
  }
}

void TileTask(const ConvRun& run, const TaskRange& r, int thread, PreparedSource* prepared) {
  const DirectPlan& p = run.plan.Own<DirectPlan>();
  const bool plain_dst = run.d.dst.channels_last();
  float* blocks = run.scratch.Grant(p.row, thread);
  const int64_t px = r.end - r.begin;
  const TileTarget target =
      plain_dst ? TileTarget{blocks, p.groups[r.group_begin].first_block, px * kBlock}
                : TileTarget{BytesFrom(run.DstBlock(r.n, 0),
                                       r.begin * kBlock * run.plan.tensors.dst_bytes),
                             0, run.plane() * kBlock};
  RunChunks(run, r, target, thread, prepared);
  if (plain_dst) StorePlain(run, PlainPartOf(run, r), blocks);
}

// What threads take of each other's tasks: groups, whose weights come alongside while the
// source stays; where there are few, tiles of pixels or rows of them, unless each of these would
// have to pack the weights again.
struct TaskUnits {
  static constexpr int64_t kFewGroups = 4;

  explicit TaskUnits(const ConvRun& run)
      : p(run.plan.Own<DirectPlan>()), unit_pixels(p.strip_pixels) {
    const ConvPlan& plan = run.plan;
    const ConvDesc& d = plan.run_desc;
    if (p.icb_chunk < plan.icb || d.groups > 1) return;  // a task is one unit
    by_groups = p.packs_panels || p.group_splits > 1 || p.groups.size() >= kFewGroups;
    if (by_groups) return;
    const int64_t tile = RowsTogether(plan.isa, FamilyOf(p), p.groups[0].blocks);
    const bool any_pixels = (p.in_place || p.is_line || d.ow() == 1) && !p.by_row;
    unit_pixels = any_pixels ? tile : d.ow();
  }

  int64_t Count(const TaskRange& r) const {
    return by_groups ? r.group_end - r.group_begin : CeilDiv(r.end - r.begin, unit_pixels);
  }

  TaskRange Of(TaskRange r, const Units& u) const {
    if (by_groups) {
      r.group_end = r.group_begin + u.end;
      r.group_begin += u.begin;
    } else {
      r.end = std::min(r.end, r.begin + u.end * unit_pixels);
      r.begin += u.begin * unit_pixels;
      if (u.begin > 0) r.ahead_end = 0;  // they have come with the first pixels
    }
    return r;
  }

  // All weights pass each time that a thread takes pixels, so it takes 6/9, 2/9 and 1/9.
  double Fraction() const { return by_groups ? 0 : 0.67; }
  int64_t Least() const { return by_groups ? 1 : CeilDiv(CeilDiv(p.strip_pixels, unit_pixels), 9); }

  const DirectPlan& p;
  bool by_groups = false;
  int64_t unit_pixels;
};

void DotTask(const ConvRun& run, int64_t task, int thread) {
  const DirectPlan& p = run.plan.Own<DirectPlan>();
  const TaskRange r = Locate(run, task);
  DotArgs a;
  a.src = SourceFor(run, r, 0, run.plan.icb, thread);
  a.tap_offsets = p.tap_offsets.data();
  a.taps = static_cast<int64_t>(p.tap_offsets.size());
  a.weights = run.buffers.packed;
  a.px = r.end - r.begin;
  a.oc = run.d.oc();
  a.bias = run.bias;
  a.dst = run.scratch.Grant(p.row, thread);
  DirectKernelsFor(run.plan.isa).dot(a);
  StorePlainRows(run, r.n, r.begin, 0, a.px, a.oc, a.dst);
}

void RunTiles(const ConvRun& run, ThreadPool& pool) {
  const ConvPlan& plan = run.plan;
  const DirectPlan& p = run.plan.Own<DirectPlan>();
  const TaskUnits units(run);
  // In pairs all pixels of a task share an exponent, whoever computes them.
  const bool shares_exponent = p.fip() && !units.by_groups && p.icb_chunk == plan.icb;
  ParallelUnits(pool, plan.tasks, [&](UnitTaker& taker) {
    const int thread = taker.thread();
    PreparedSource prepared;
    for (int64_t task; taker.NextTask(&task);) {
      const TaskRange r = Locate(run, task);
      const int exponent =
          shares_exponent ? Prepare(run, r, 0, plan.icb, thread, &prepared).pairs.exponent : 0;
      taker.Publish(units.Count(r), exponent);
      for (Units u; taker.Next(units.Fraction(), units.Least(), &u);) {
        TileTask(run, units.Of(r, u), thread, &prepared);
      }
    }
    for (Units u; taker.Steal(units.Fraction(), units.Least(), &u);) {
      const TaskRange r = units.Of(Locate(run, u.task), u);
      if (shares_exponent) Prepare(run, r, 0, plan.icb, thread, &prepared, &u.payload);
      TileTask(run, r, thread, &prepared);
    }
  });
}

}  // namespace

void RunDirect(const ConvRun& run, ThreadPool& pool) {
  if (run.plan.Own<DirectPlan>().variant != kDotLanes) return RunTiles(run, pool);
  pool.ParallelFor(run.plan.tasks, [&](int64_t t, int thread) { DotTask(run, t, thread); });
}

}  // namespace bd
