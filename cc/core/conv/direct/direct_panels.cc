// A K chunk of a task of register tiles as a call of the loop over panels.
#include <algorithm>

#include "cc/core/conv/direct/direct.h"
#include "cc/core/gemm/gemm_panels.h"
#include "cc/core/gemm/low_precision_pack.h"

namespace bd {

TileFamily FamilyOf(const DirectPlan& p) {
  if (p.low_precision()) return p.family;
  if (!p.blocked() || p.by_row) return TileFamily::kStrided;
  return p.fip() ? TileFamily::kFip : TileFamily::kBlocked;
}

FipCall PreparePairs(const ConvRun& run, const float* src, int64_t b0, int64_t b1, int64_t pixels,
                     int thread, const int* exponent) {
  const DirectPlan& p = run.plan.Own<DirectPlan>();
  FipSource a = {src, nullptr, p.tap_offsets.data()};
  a.taps = (std::min(b1, run.d.ic() / kBlock) - b0) * p.taps_per_block;
  a.rows = pixels;
  a.exponent = exponent;
  const float* const trailer = run.buffers.packed + p.groups.packed_floats;
  a.of_packed = static_cast<int>(*trailer);
  p.pairs.Prepare(run.plan.isa, run.scratch, thread, a);
  FipCall call = p.pairs.Call(run.scratch, thread);
  call.scaled = run.scratch.Grant(p.scaled, thread);
  call.unscale = trailer + p.pairs_floats(run.plan.ocb, b0 / p.icb_chunk);
  call.column_terms = call.unscale + run.plan.ocb * kBlock;
  return call;
}

void RunChunk(const ConvRun& run, const TaskRange& r, int64_t g0, int64_t g1, int64_t b0,
              int64_t b1, const ChunkSource& from, const TileTarget& target, int thread) {
  const DirectPlan& p = run.plan.Own<DirectPlan>();
  const OutputGroup& start = p.groups[g0];
  PanelCall<OutputGroup> call;
  call.isa = run.plan.isa;
  call.family = FamilyOf(p);
  call.panels = p.groups.list.data();
  call.begin = g0;
  call.end = g1;
  // Where panels are packed in the run it is an address only; each gets another one.
  call.packed = p.packs_panels ? run.buffers.plain : run.buffers.packed;
  call.tap_offsets = p.tap_offsets.data();
  call.px_stride = p.px_stride;
  call.unit = p.unit;
  if (!p.blocked()) {
    const auto taps = static_cast<int64_t>(p.tap_offsets.size());
    call.tail_taps = p.odd_taps() ? taps / 2 : 0;
    call.taps = taps - call.tail_taps;
    call.tap_length = p.tap_length;
    call.tail_length = 1;
  } else {
    const bool partial = b1 == run.plan.icb && run.d.ic() % kBlock != 0;
    call.taps = (b1 - b0 - partial) * p.taps_per_block;
    call.tail_taps = partial ? p.taps_per_block : 0;
    call.tap_length = p.pixel;
    call.tail_length = p.Dwords(run.d.ic() % kBlock);
    call.first_row = (b0 - start.icb_begin) * p.taps_per_block * p.pixel;
    call.pass_taps = p.pass_blocks * p.taps_per_block;
  }
  call.first = b0 == start.icb_begin;
  call.last = b1 == start.icb_end;
  if (!call.last) {
    call.ahead = call.Weights(g0, call.first_row + call.rows_of_b());
  } else if (g1 < r.ahead_end) {
    call.ahead = call.Weights(g1, call.first_row);
  }
  call.asks_ahead = !p.packs_panels;
  if (p.fip()) call.pairs = &from.pairs;
  Int8Columns bytes;
  const auto bind = [&](int64_t g, TileArgs* a, PartialSums*) {
    const OutputGroup& group = p.groups[g];
    a->epilogue = BlocksEpilogue(run, group.first_block, group.blocks, r.n, r.begin);
    a->epilogue.dst_block_stride = target.block_stride;
    a->dst = BytesFrom(target.base, (group.first_block - target.first_block) * target.block_stride *
                                        a->epilogue.tensors.dst_bytes);
    if (IsBytes(p.family)) {
      const int64_t channel = group.first_block * kBlock;
      const float* const sums = run.buffers.packed + p.groups.packed_floats + channel;
      bytes.Bind(run.d.types.src_quantization, As<const int32_t>(sums),
                 run.buffers.weight_scales + channel, run.d.oc() - channel, group.blocks * kBlock);
      a->start = bytes.start;
      a->epilogue.scale = bytes.scale;
    }
    if (p.packs_panels) {
      float* const packed = run.scratch.Grant(p.scaled, thread);
      PackPanel(run, group, b0, b1, packed);
      a->weights = packed;
    }
  };
  // Pixels of neighbouring rows follow each other, so all of them are one segment; by row each
  // row is one.
  const int64_t pixels = r.end - r.begin, segments = p.by_row ? pixels / run.d.ow() : 1;
  RunPanels(call, bind,
            EvenRows(from.src, pixels / segments, p.px_stride, segments, p.row_stride, p.unit));
}

}  // namespace bd
