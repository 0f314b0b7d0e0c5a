// Strips, splits and K chunks of register tiles. Sizes are those of a core's caches: a
// strip and two groups of weights share the L2 cache, a pass of weights and the pixels of two
// tiles the L1 cache.
#include <algorithm>
#include <limits>

#include "cc/base/caches.h"
#include "cc/core/conv/conv_kernel.h"
#include "cc/core/conv/conv_paired.h"
#include "cc/core/conv/conv_run.h"
#include "cc/core/conv/conv_tiles.h"

namespace bd {
namespace {

constexpr int64_t kWeightsChunkBytes = 160 << 10;    // one group's weights of a K chunk
constexpr int64_t kInPlaceWeightsBytes = 512 << 10;  // the same for 1x1, which needs no strip

// Most source that a strip brings in: with 512 KB of L2 (Zen 3, one thread) 1024->256 at 14x14
// and 2048->512 at 7x7 take 1550 and 1750 us with 192 KB, 2000 and 2100 with 384.
int64_t StripBytes() { return L2CacheBytes() * 3 / 8; }

// Rows of a matrix that are a strip, however wide: K is whole in their sums, and in short strips
// all weights would come from memory once a strip (8 rows of 25088 by 4096, AVX2: 113 and 20 ms).
constexpr int64_t kMatrixRows = 56;

// Weights of a group that a pass multiplies by all pixels of a task (of one that takes half a last
// block in, up to twice as many): they stay in L1, which a neighbour on the same core may take
// half of. Tiles of several vectors a block read all weights each few pixels and wait for L2
// otherwise (Zen 3, AVX2, 2048->512 at 7x7: 1840 and 1540 us); those of AVX-512 have time enough
// between two rows.
constexpr int64_t kPassBytes = 12 << 10;

int64_t PassBlocks(const ConvPlan& plan) {
  if (plan.isa == Isa::kAvx512 || plan.packing.form != ConvForm::kTile) return plan.icb_chunk;
  const int64_t lanes = plan.packing.group_blocks * kBlock;
  const int64_t block_bytes = sizeof(float) * kBlock * plan.taps_per_block * lanes;
  const int64_t most = std::max<int64_t>(1, kPassBytes / block_bytes);
  return CeilDiv(plan.icb_chunk, CeilDiv(plan.icb_chunk, most));
}

// 1x1 with a stride, where a row fills a tile: a copy of every other pixel costs
// more than tiles that reach from pixel to pixel (AVX-512, 256->128 at 56x56: 261 and 226
// us; but 1024->2048 at 14x14, rows of 7 pixels: 910 and 995). Not so where tiles have few
// pixels: AVX2 takes 480 and 750 there, 2100 and 3400.
bool IsStridedInPlace(const ConvDesc& d, Isa isa) {
  return isa == Isa::kAvx512 && d.ow >= GemmKernelsFor(isa).tile_pixels && d.kh == 1 && d.kw == 1 &&
         d.pad_top == 0 && d.pad_left == 0 && d.groups == 1 && d.ic % kBlock == 0 &&
         (d.oh - 1) * d.sh < d.ih && (d.ow - 1) * d.sw < d.iw;
}

// Lays out a strip of `rows` output rows and the taps into it.
void LayOutStrip(ConvPlan* plan, int64_t rows) {
  const ConvDesc& d = plan->desc;
  plan->strip_rows = rows;
  plan->tap_offsets.clear();
  if (plan->in_place && plan->packing.form == ConvForm::kPlainTile) {
    plan->tap_offsets.push_back(0);
    return;
  }
  if (plan->in_place) {
    for (int64_t b = 0; b < plan->icb_chunk; ++b) {
      plan->tap_offsets.push_back(b * d.ih * d.iw * kBlock);
    }
    return;
  }
  if (plan->packing.form == ConvForm::kPlainTile) {
    // Kernel columns are neighbours, so with dw == 1 a kernel row is one tap of kw * ic
    // floats.
    plan->strip_columns = (d.ow - 1) * d.sw + (d.kw - 1) * d.dw + 1;
    const int64_t row = plan->strip_columns * d.ic;
    plan->row_stride = d.sh * row;
    for (int64_t h = 0; h < d.kh; ++h) {
      for (int64_t w = 0; w < (d.dw == 1 ? 1 : d.kw); ++w) {
        plan->tap_offsets.push_back(h * d.dh * row + w * d.dw * d.ic);
      }
    }
    plan->strip.count = ((rows - 1) * d.sh + (d.kh - 1) * d.dh + 1) * row;
    return;
  }
  plan->phase_row.assign(d.sh + 1, 0);
  std::vector<int64_t> depth(d.sh, 0);  // rows of a phase
  for (int64_t h = 0; h < d.kh; ++h) {
    int64_t& rows_of_phase = depth[h * d.dh % d.sh];
    rows_of_phase = std::max(rows_of_phase, h * d.dh / d.sh + rows);
  }
  for (int64_t p = 0; p < d.sh; ++p) plan->phase_row[p + 1] = plan->phase_row[p] + depth[p];
  plan->rows_per_column = plan->phase_row[d.sh];
  const int64_t row = d.ow * kBlock;
  const int64_t column = plan->rows_per_column * row;
  for (int64_t b = 0; b < plan->icb_chunk; ++b) {
    for (int64_t h = 0; h < d.kh; ++h) {
      for (int64_t w = 0; w < d.kw; ++w) {
        const int64_t r = plan->phase_row[h * d.dh % d.sh] + h * d.dh / d.sh;
        plan->tap_offsets.push_back((b * d.kw + w) * column + r * row);
      }
    }
  }
  plan->strip.count = plan->icb_chunk * d.kw * column;
}

// Cycles of the busiest thread when tasks of `cost` are handed out in order.
double Makespan(int64_t full_tasks, double cost, int64_t last_tasks, double last_cost,
                int threads) {
  const int64_t rounds = full_tasks / threads;
  const int64_t left = full_tasks % threads;
  const double start = rounds * cost;
  if (left == 0) return start + CeilDiv(last_tasks, threads) * last_cost;
  const double extra = std::max(cost, CeilDiv(last_tasks, threads) * last_cost);
  return start + extra;
}

// The next smaller strip that makes more, even strips; 0 after 1.
int64_t NextSmaller(int64_t units, int64_t per, int64_t* strips) {
  if (per == 1) return 0;
  const int64_t next = CeilDiv(units, CeilDiv(units, per) + 1);
  per = std::min(per - 1, next);
  *strips = CeilDiv(units, per);
  return per;
}

// Picks strip size and group splits by estimated cycles of the busiest thread:
// multiply-adds at 2 a cycle, strips at 1.5 cycles a vector, a group's weights
// once a strip at 1 vector a cycle for a quarter of it (the rest is hidden), and at 3 cycles
// where they are a matrix, which may come from memory.
void ChooseSplits(ConvPlan* plan) {
  const ConvDesc& d = plan->desc;
  const int64_t group_count = static_cast<int64_t>(plan->groups.size());
  const bool paired = plan->packing.paired;
  const int64_t weight_floats = plan->packed_floats - (paired ? PairedTrailerOf(*plan).floats : 0);
  const double k = static_cast<double>(weight_floats) / (kBlock * plan->ocb);
  const bool any_pixels = plan->in_place && !plan->by_row;
  // Pixels a step: a tile, but where those are few, even strips count for more (960->160
  // at 7x7, 2 threads: 28 and 21 pixels take 73 us, 25 and 24 take 66).
  const int64_t tiles = CeilDiv(d.oh * d.ow, 14);
  const int64_t unit = !any_pixels ? d.ow : tiles < 8 * plan->threads ? 1 : 14;
  const int64_t units = any_pixels ? CeilDiv(d.oh * d.ow, unit) : d.oh;
  const bool blocked = plan->packing.form != ConvForm::kPlainTile;
  const bool matrix = !blocked && plan->in_place;
  const int64_t chunk = plan->in_place ? plan->icb : plan->icb_chunk;
  const double halo = plan->in_place ? 0 : static_cast<double>((d.kh - 1) * d.dh) / d.sh;
  const double source_per_unit =  // bytes of one unit in the strip
      4.0 * unit * (blocked ? chunk * kBlock * (plan->in_place ? 1 : d.kw) : d.ic * d.sw * d.sh);
  const double terms_per_unit =
      paired ? unit * (plan->icb * plan->taps_per_block * kTermsVector + kTermsPixel) / 2 : 0;
  const double copy_per_unit =
      (plan->in_place ? 0 : 1.5 * source_per_unit / 64 * CeilDiv(plan->icb, chunk)) +
      terms_per_unit;
  const double fma_per_unit = unit * k * plan->ocb / 2 * (paired ? kPairedCycles : 1);
  const double weights = (matrix ? 3 : 0.25) * k * plan->ocb;
  double best = std::numeric_limits<double>::infinity();
  for (int64_t per = units, strips = 1; per >= 1; per = NextSmaller(units, per, &strips)) {
    const bool fits =
        (per + halo) * source_per_unit <= StripBytes() || (matrix && per * unit <= kMatrixRows);
    if (!fits && per > 1) continue;
    const int64_t last = units - (strips - 1) * per;
    // Few strips of a matrix: shares of its columns that fill all threads, also three of them.
    const int64_t fewest =
        matrix && strips < plan->threads ? std::min<int64_t>(plan->threads, group_count) : 1;
    for (int64_t splits = fewest; splits <= group_count && splits <= 8 * plan->threads;
         splits *= 2) {
      if (splits > 1 && plan->packing.form == ConvForm::kDot) break;
      const double share = static_cast<double>(CeilDiv(group_count, splits)) / group_count;
      const double cost =
          300 + share * (per * fma_per_unit + weights) + (per + halo) * copy_per_unit;
      const double last_cost =
          300 + share * (last * fma_per_unit + weights) + (last + halo) * copy_per_unit;
      const double span =
          Makespan(d.n * (strips - 1) * splits, cost, d.n * splits, last_cost, plan->threads) +
          (strips * splits * d.n > 1 && plan->threads > 1 ? 3000 : 0);
      if (span < best * 0.995) {
        best = span;
        plan->strip_pixels = per * unit;
        plan->strips = strips;
        plan->group_splits = splits;
      }
    }
  }
}

}  // namespace

bool IsInPlace(const ConvDesc& d) {
  return d.kh == 1 && d.kw == 1 && d.sh == 1 && d.sw == 1 && d.pad_top == 0 && d.pad_left == 0 &&
         d.oh == d.ih && d.ow == d.iw;
}

void PlanTiles(ConvPlan* plan) {
  const ConvDesc& d = plan->desc;
  const bool blocked = plan->packing.form != ConvForm::kPlainTile;
  const bool strided =
      blocked && !plan->packing.paired && !IsInPlace(d) && IsStridedInPlace(d, plan->isa);
  plan->in_place = IsInPlace(d) || strided;
  plan->by_row = strided || (!blocked && !plan->in_place);
  plan->taps_per_block = d.kh * d.kw;
  if (blocked) {
    plan->px_stride = strided ? d.sw * kBlock : kBlock;
    plan->row_stride = d.sh * d.iw * kBlock;
  } else {
    plan->tap_length = (d.dw == 1 ? d.kw : 1) * d.ic;
    plan->px_stride = d.sw * d.ic;
  }
  int64_t most_blocks = 1;  // source blocks of the widest group
  for (const OutputGroup& g : plan->groups) {
    most_blocks = std::max(most_blocks, g.icb_end - g.icb_begin);
  }
  plan->icb_chunk = most_blocks;
  // A sum late in the chain reads the old dst after the last chunk: one chunk.
  const bool sum_on_tile = d.dst_layout == Layout::nChw16c && plan->epilogue.rest.HasSum();
  if (plan->packing.form == ConvForm::kTile && !sum_on_tile) {
    const int64_t block_bytes = 4 * kBlock * d.kh * d.kw * plan->widest_blocks * kBlock;
    const int64_t budget = plan->in_place ? kInPlaceWeightsBytes : kWeightsChunkBytes;
    const int64_t chunks = CeilDiv(most_blocks, std::max<int64_t>(1, budget / block_bytes));
    plan->icb_chunk = CeilDiv(most_blocks, chunks);
  }
  plan->pass_blocks = sum_on_tile ? plan->icb_chunk : PassBlocks(*plan);
  if (plan->packing.paired) {
    plan->scaled.count =
        plan->icb_chunk * plan->taps_per_block * kBlock * plan->widest_blocks * kBlock;
  }
  ChooseSplits(plan);
  LayOutStrip(plan, plan->in_place ? 0 : plan->strip_pixels / std::max<int64_t>(1, d.ow));
  if (plan->packing.paired) {  // pairs with depthwise take all rows at once
    plan->terms.count = plan->in_place ? d.oh * d.ow : plan->strip_pixels;
  }
  plan->tasks = d.n * plan->strips * plan->group_splits;
  if (d.dst_layout == Layout::nhwc) {
    const int64_t blocks = plan->packing.form == ConvForm::kDot ? 0 : plan->ocb * kBlock;
    plan->row.count = plan->strip_pixels * (blocks + d.oc);
  }
}

}  // namespace bd
