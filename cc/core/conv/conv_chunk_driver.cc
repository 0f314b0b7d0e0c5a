// A K chunk of a task of register tiles as a call of the loop over panels.
#include <algorithm>
#include <cmath>

#include "cc/core/conv/conv.h"
#include "cc/core/conv/conv_paired.h"
#include "cc/core/conv/conv_run.h"
#include "cc/core/gemm/fip_kernel.h"
#include "cc/core/gemm/gemm_panels.h"

namespace bd {

TileFamily FamilyOf(const ConvPlan& plan) {
  if (plan.packing.form == ConvForm::kPlainTile || plan.by_row) return TileFamily::kStrided;
  return plan.packing.paired ? TileFamily::kFip : TileFamily::kBlocked;
}

void RunChunk(const ConvRun& run, const TaskRange& r, int64_t g0, int64_t g1, int64_t b0,
              int64_t b1, const ChunkSource& from, const TileTarget& target, int thread) {
  const ConvPlan& plan = run.plan;
  const OutputGroup& start = plan.groups[g0];
  PanelCall<OutputGroup> call;
  call.isa = plan.isa;
  call.family = FamilyOf(plan);
  call.panels = plan.groups.data();
  call.begin = g0;
  call.end = g1;
  call.packed = run.buffers.packed;
  call.tap_offsets = plan.tap_offsets.data();
  call.px_stride = plan.px_stride;
  if (plan.packing.form == ConvForm::kPlainTile) {  // a pixel is one tap
    call.taps = static_cast<int64_t>(plan.tap_offsets.size());
    call.tap_length = plan.tap_length;
  } else {
    const bool partial = b1 == plan.icb && run.d.ic % kBlock != 0;
    call.taps = (b1 - b0 - partial) * plan.taps_per_block;
    call.tail_taps = partial ? plan.taps_per_block : 0;
    call.tail_length = run.d.ic % kBlock;
    call.first_row = (b0 - start.icb_begin) * plan.taps_per_block * kBlock;
    call.pass_taps = plan.pass_blocks * plan.taps_per_block;
  }
  call.first = b0 == start.icb_begin;
  call.last = b1 == start.icb_end;
  if (!call.last) {
    call.behind = call.Weights(g0, call.first_row + call.rows_of_b());
  } else if (g1 < r.ahead_end) {
    call.behind = call.Weights(g1, call.first_row);
  }
  call.pixel_terms = from.pixel_terms;
  PairedGroup terms;
  const auto bind = [&](int64_t g, TileArgs* a, PartialSums*) {
    const OutputGroup& group = plan.groups[g];
    a->dst = target.base + (group.first_block - target.first_block) * target.block_stride;
    a->dst_block_stride = target.block_stride;
    a->epilogue = GroupEpilogue(run, group, r.n, r.begin);
    if (from.exponent != 0) {
      float* scaled = run.scratch.Grant(plan.scaled, thread);
      FipKernelsFor(plan.isa).scale({a->weights, std::ldexp(1.f, from.exponent),
                                     call.rows_of_b() * group.blocks * kBlock, scaled});
      a->weights = scaled;
    }
    if (from.pixel_terms != nullptr) {
      terms.Bind(run, group, b0, b1, from);
      a->fip = {nullptr, terms.channel_terms, terms.unscale};
    }
  };
  // Pixels of neighbouring rows follow each other, so all of them are one segment; by row each
  // row is one.
  const int64_t pixels = r.end - r.begin, segments = plan.by_row ? pixels / run.d.ow : 1;
  RunPanels(call, bind,
            EvenRows(from.src, pixels / segments, plan.px_stride, segments, plan.row_stride));
}

}  // namespace bd
