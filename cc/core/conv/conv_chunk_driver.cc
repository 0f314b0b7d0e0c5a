// Runs the tiles of a K chunk of a task: weights as its source wants them, kernels by shape.
#include <algorithm>
#include <cmath>

#include "cc/core/conv/conv.h"
#include "cc/core/conv/conv_kernel.h"
#include "cc/core/conv/conv_paired.h"
#include "cc/core/conv/conv_paired_kernel.h"
#include "cc/core/conv/conv_run.h"

namespace bd {
namespace {

// The packed weights of output group g for source blocks [b0, b1) times the scale of
// image n: one multiplication a weight and task, where scaling src costs one a pixel and
// channel and a pass over memory. Times 2^exponent, too.
const float* ScaledWeights(const ConvRun& run, const float* weights, int64_t n, int64_t g,
                           int64_t b0, int64_t b1, int exponent, float* scaled) {
  const ConvPlan& plan = run.plan;
  const float power = std::ldexp(1.f, exponent);
  float scale[kBlock];
  std::fill(scale, scale + kBlock, power);
  ScaleRowsArgs a;
  a.scale = scale;
  a.weights = weights;
  a.row_floats = plan.groups[g].blocks * kBlock;
  a.dst = scaled;
  for (int64_t b = b0; b < b1; ++b) {
    if (run.d.src_scaled) {
      const float* of_block = run.buffers.src_scale + (n * plan.icb + b) * kBlock;
      for (int64_t i = 0; i < kBlock; ++i) scale[i] = power * of_block[i];
    }
    a.rows = std::min(kBlock, run.d.ic - b * kBlock);
    for (int64_t tap = 0; tap < plan.taps_per_block; ++tap) {
      run.kernels.scale_rows(a);
      a.weights += a.rows * a.row_floats;
      a.dst += a.rows * a.row_floats;
    }
  }
  return scaled;
}

using TileKernel = void (*)(const TileArgs&);

// Tile kernels by pixels - 1.
const TileKernel* TileKernels(const ConvRun& run, bool paired, int64_t blocks,
                              int32_t valid_lanes) {
  const bool plain = run.plan.packing.form == ConvForm::kPlainTile || run.plan.by_row;
  if (plain) return run.kernels.plain_tile[blocks - 1];
  const bool half = valid_lanes <= kBlock / 2;
  if (paired) {
    const ConvPairedKernels& kernels = ConvPairedKernelsFor(run.plan.isa);
    return (half ? kernels.half_tile : kernels.tile)[blocks - 1];
  }
  return (half ? run.kernels.half_tile : run.kernels.tile)[blocks - 1];
}

// The taps of source blocks [k0, k1) of a chunk that begins at block b0.
void SetTaps(const ConvPlan& plan, int64_t b0, int64_t k0, int64_t k1, TileArgs* a) {
  const ConvDesc& d = plan.desc;
  a->tap_offsets = plan.tap_offsets.data();
  if (plan.packing.form == ConvForm::kPlainTile) {
    // A pixel is one tap: the part of it that is this chunk.
    a->tap_length = std::min(d.ic, k1 * kBlock) - k0 * kBlock;
    a->taps = static_cast<int64_t>(plan.tap_offsets.size());
    return;
  }
  const bool partial = k1 == plan.icb && d.ic % kBlock != 0;
  a->tap_offsets += (k0 - b0) * plan.taps_per_block;
  a->tap_length = plan.tap_length;
  a->taps = (k1 - k0 - partial) * plan.taps_per_block;
  a->tail_taps = partial ? plan.taps_per_block : 0;
  a->tail_length = d.ic % kBlock;
}

}  // namespace

int64_t TilePixels(const ConvPlan& plan, const OutputGroup& group) {
  if (plan.packing.paired) return ConvPairedKernelsFor(plan.isa).tile_pixels;
  const ConvKernels& kernels = ConvKernelsFor(plan.isa);
  return group.blocks > plan.packing.group_blocks ? kernels.joined_tile_pixels
                                                  : kernels.tile_pixels;
}

void RunChunk(const ConvRun& run, const TaskRange& r, int64_t g0, int64_t g1, int64_t b0,
              int64_t b1, const ChunkSource& from, const TileTarget& target, int thread) {
  const ConvPlan& plan = run.plan;
  const bool paired = from.pixel_terms != nullptr;
  const ConvDesc& d = run.d;
  // Pixels of neighbouring rows follow each other, so all of them are one segment;
  // by row each row is one.
  const int64_t pixels = r.end - r.begin;
  const int64_t segments = plan.by_row ? pixels / d.ow : 1;
  const int64_t segment_pixels = pixels / segments;
  TileArgs a = {};
  a.px_stride = plan.px_stride;
  a.dst_block_stride = target.block_stride;
  PairedGroup terms;
  a.paired = {nullptr, terms.channel_terms, terms.unscale};
  for (int64_t g = g0; g < g1; ++g) {
    const OutputGroup& group = plan.groups[g];
    const EvenTiles even(segment_pixels, TilePixels(plan, group));
    const int64_t row_floats = group.blocks * kBlock;
    const int64_t k_step = plan.taps_per_block * kBlock * row_floats;
    const int64_t k_begin = b0 - group.icb_begin;
    const float* packed = run.buffers.packed + group.weights_offset + k_begin * k_step;
    const float* weights = d.src_scaled || from.exponent != 0
                               ? ScaledWeights(run, packed, r.n, g, b0, b1, from.exponent,
                                               run.scratch.Grant(plan.scaled, thread))
                               : packed;
    if (paired) terms.Bind(run, group, b0, b1, from, weights);
    TileEpilogue& e = a.epilogue;
    const TileEpilogue whole = GroupEpilogue(run, group, r.n);
    const TileKernel* const kernels = TileKernels(run, paired, group.blocks, whole.valid_lanes);
    float* dst = target.base + (group.first_block - target.first_block) * target.block_stride;
    const int64_t dst_offset =  // in operands, where dst is blocked
        ((r.n * plan.ocb + group.first_block) * run.plane() + r.begin) * kBlock;
    for (int64_t k0 = b0; k0 < b1; k0 += plan.pass_blocks) {
      const int64_t k1 = std::min(b1, k0 + plan.pass_blocks);
      const bool first = k0 == group.icb_begin, last = k1 == group.icb_end;
      SetTaps(plan, b0, k0, k1, &a);
      a.weights = weights + (k0 - b0) * k_step;
      PrefetchShare share;
      share.next = nullptr;
      if (k1 < b1) {
        share.next = weights + (k1 - b0) * k_step;
      } else if (g + 1 < r.ahead_end && (g + 1 < g1 || last)) {
        const OutputGroup& behind = plan.groups[g + 1];
        share.next = run.buffers.packed + behind.weights_offset +
                     k_begin * plan.taps_per_block * kBlock * behind.blocks * kBlock;
      } else if (!last) {  // the first group's next K chunk
        const OutputGroup& start = plan.groups[g0];
        share.next = run.buffers.packed + start.weights_offset + (b1 - start.icb_begin) * k_step;
      }
      share.rows = a.taps * a.tap_length + a.tail_taps * a.tail_length;
      share.row_floats = row_floats;
      share.tiles = segments * even.count;
      e = whole;
      if (!first) e.bias = nullptr;
      e.clamp &= last;
      if (!last) e.program = nullptr;
      share.Start(&a);
      for (int64_t s = 0; s < segments; ++s) {
        even.ForRuns([&](int64_t p, int64_t px, int64_t tiles) {
          const int64_t at = (s * segment_pixels + p) * kBlock;
          if (paired) a.paired.pixel_terms = from.pixel_terms + p;
          a.src = from.src + s * plan.row_stride + p * plan.px_stride;
          a.dst = dst + at;
          e.dst_offset = dst_offset + at;
          if (!first) {
            e.acc_in = a.dst;
            e.acc_scale = 1.f;
          } else if (run.sum != nullptr) {
            e.acc_in = run.sum + e.dst_offset;
          }
          a.tiles = tiles;
          kernels[px - 1](a);
          share.Pass(tiles, &a);
        });
      }
    }
  }
}

}  // namespace bd
