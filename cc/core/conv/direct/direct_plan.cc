// Strips, splits and K chunks of register tiles. Sizes are those of a core's caches: a
// strip and two groups of weights share the L2 cache, a pass of weights and the pixels of two
// tiles the L1 cache.
#include <algorithm>
#include <limits>
#include <memory>

#include "cc/base/machine.h"
#include "cc/core/conv/common/cost.h"
#include "cc/core/conv/direct/direct.h"
#include "cc/core/conv/direct/direct_kernel.h"

namespace bd {
namespace {

constexpr int64_t kWeightsChunkBytes = 160 << 10;    // one group's weights of a K chunk
constexpr int64_t kInPlaceWeightsBytes = 512 << 10;  // the same for 1x1, which needs no strip

// Most source that a strip brings in: with 512 KB of L2 (Zen 3, one thread) 1024->256 at 14x14
// and 2048->512 at 7x7 take 1550 and 1750 us with 192 KB, 2000 and 2100 with 384.
int64_t StripBytes() { return ThisMachine().l2_bytes * 3 / 8; }

// The same of a plain source, a first layer's: little of what is copied is read again, and the
// result should find its place in L2.
constexpr int64_t kPlainStripBytes = 48 << 10;

// What tiles read of bytes: words, which a strip has room for, but where four bytes are multiplied
// at once.
TileFamily FamilyOfBytes(Isa isa) {
  return MultipliesBytes(isa) ? TileFamily::kInt8 : TileFamily::kWords;
}

// Rows of a matrix that are a strip, however wide: K is whole in their sums, and in short strips
// all weights would come from memory once a strip (8 rows of 25088 by 4096, AVX2: 113 and 20 ms).
constexpr int64_t kMatrixRows = 56;

// Weights of a group that a pass multiplies by all pixels of a task (of one that takes half a last
// block in, up to twice as many): they stay in L1, which a neighbour on the same core may take
// half of. Tiles of several vectors a block read all weights each few pixels and wait for L2
// otherwise (Zen 3, AVX2, 2048->512 at 7x7: 1840 and 1540 us); those of AVX-512 have time enough
// between two rows.
constexpr int64_t kPassBytes = 12 << 10;

// Register tiles over a blocked source.
bool IsTiled(const DirectPlan& p) { return p.variant == kBlockedTiles || p.variant == kFipTiles; }

int64_t PassBlocks(const DirectPlan& p, Isa isa) {
  if (isa >= Isa::kAvx512 || !IsTiled(p)) return p.icb_chunk;
  const int64_t lanes = p.groups.step * kBlock;
  const int64_t block_bytes = sizeof(float) * kBlock * p.taps_per_block * lanes;
  const int64_t most = std::max<int64_t>(1, kPassBytes / block_bytes);
  return CeilDiv(p.icb_chunk, CeilDiv(p.icb_chunk, most));
}

// 1x1 with a stride, where a row fills a tile: a copy of every other pixel costs
// more than tiles that reach from pixel to pixel (AVX-512, 256->128 at 56x56: 261 and 226
// us; but 1024->2048 at 14x14, rows of 7 pixels: 910 and 995). Not so where tiles have few
// pixels: AVX2 takes 480 and 750 there, 2100 and 3400.
bool IsStridedInPlace(const ConvDesc& d, Isa isa) {
  return isa >= Isa::kAvx512 && d.ow() >= GemmKernelsFor(isa).tile_pixels && d.kh() == 1 &&
         d.kw() == 1 && d.pad_top() == 0 && d.pad_left() == 0 && d.groups == 1 &&
         d.ic() % kBlock == 0 && (d.oh() - 1) * d.sh() < d.ih() && (d.ow() - 1) * d.sw() < d.iw();
}

// Pixels of a row that are a tile.
constexpr int64_t kShortestRow = 7;

// Lays out a strip of `rows` output rows and the taps into it.
void LayOutStrip(const ConvPlan& plan, int64_t rows, DirectPlan* p) {
  const ConvDesc& d = plan.run_desc;
  p->strip_rows = rows;
  p->tap_offsets.clear();
  if (p->in_place && !p->blocked()) {
    p->tap_offsets.push_back(0);
    return;
  }
  if (p->in_place) {
    for (int64_t b = 0; b < p->icb_chunk; ++b) {
      p->tap_offsets.push_back((plan.src_block(b) - plan.src_block(0)) * d.ih() * d.iw() *
                               p->pixel);
    }
    return;
  }
  if (!p->blocked()) {
    p->strip_columns = p->SourceColumns(d, p->is_line ? p->strip_pixels : d.ow());
    const int64_t row = p->strip_columns * p->channels;
    p->row_stride = d.sh() * row;
    for (int64_t h = 0; h < d.kh(); ++h) {
      for (int64_t w = 0; w * p->tap_units < d.kw() * p->channels; ++w) {
        p->tap_offsets.push_back(h * d.dh() * row + w * d.dw() * p->channels);
      }
    }
    int64_t units = ((rows - 1) * d.sh() + (d.kh() - 1) * d.dh() + 1) * row;
    if (p->odd_taps()) {
      const size_t taps = p->tap_offsets.size();
      for (size_t t = 0; t < taps; ++t) {
        p->tap_offsets.push_back(units + p->tap_offsets[t] + p->tap_units - 1);
      }
      p->last_channels = units;
      units *= 2;
    }
    // A dword more, of which the last tap may read some: it meets weights that are zero.
    p->strip.count = CeilDiv(units * p->unit, sizeof(float)) + (p->low_precision() ? 1 : 0);
    return;
  }
  if (p->padded) {
    p->strip_columns = (d.ow() - 1) * d.sw() + (d.kw() - 1) * d.dw() + 1;
    p->rows_per_column = (rows - 1) * d.sh() + (d.kh() - 1) * d.dh() + 1;
    const int64_t row = p->strip_columns * p->pixel;
    p->row_stride = d.sh() * row;
    for (int64_t b = 0; b < p->icb_chunk; ++b) {
      for (int64_t h = 0; h < d.kh(); ++h) {
        for (int64_t w = 0; w < d.kw(); ++w) {
          p->tap_offsets.push_back((b * p->rows_per_column + h * d.dh()) * row +
                                   w * d.dw() * p->pixel);
        }
      }
    }
    p->strip.count = p->icb_chunk * p->rows_per_column * row;
    return;
  }
  p->phase_row.assign(d.sh() + 1, 0);
  std::vector<int64_t> depth(d.sh(), 0);  // rows of a phase
  for (int64_t h = 0; h < d.kh(); ++h) {
    int64_t& rows_of_phase = depth[h * d.dh() % d.sh()];
    rows_of_phase = std::max(rows_of_phase, h * d.dh() / d.sh() + rows);
  }
  for (int64_t phase = 0; phase < d.sh(); ++phase) {
    p->phase_row[phase + 1] = p->phase_row[phase] + depth[phase];
  }
  p->rows_per_column = p->phase_row[d.sh()];
  const int64_t row = d.ow() * p->pixel;
  const int64_t column = p->rows_per_column * row;
  for (int64_t b = 0; b < p->icb_chunk; ++b) {
    for (int64_t h = 0; h < d.kh(); ++h) {
      for (int64_t w = 0; w < d.kw(); ++w) {
        const int64_t r = p->phase_row[h * d.dh() % d.sh()] + h * d.dh() / d.sh();
        p->tap_offsets.push_back((b * d.kw() + w) * column + r * row);
      }
    }
  }
  p->strip.count = p->icb_chunk * d.kw() * column;
}

// A plane of one row lies as one of one column does, and the other way round. A blocked one stands:
// its pixels are rows, which are shared out among tasks and which a strip holds once for all taps.
// A plain one lies: a tap is a kernel row, so all taps are one, and strips are of any pixels.
bool HasBetterAxis(const ConvDesc& d) {
  const bool row = d.ih() == 1 && d.oh() == 1 && d.kh() == 1;
  const bool column = d.iw() == 1 && d.ow() == 1 && d.kw() == 1;
  return d.src.blocked() ? row && d.kw() > 1 : column && d.kh() > 1;
}
void SwapAxes(ConvDesc* d) {
  const auto turned = [](const TensorView& v) {
    return TensorView(v.dtype(), v.layout(), {v.n(), v.c(), v.w(), v.h()}, v.image_stride());
  };
  d->src = turned(d->src);
  d->dst = turned(d->dst);
  std::swap(d->windows.h, d->windows.w);
}

// All of a dot's weights are one group: [icb][tap][oc][16 lanes of ic].
OutputGroups DotGroup(const ConvPlan& plan) {
  const ConvDesc& d = plan.run_desc;
  OutputGroups groups;
  groups.list.push_back({0, plan.ocb, 0, plan.icb, 0});
  groups.packed_floats = plan.icb * d.kh() * d.kw() * d.oc() * kBlock;
  return groups;
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

// Changing weights of so few pixels that each group's are read once, by one task.
constexpr int64_t kFewPixels = 64;
bool MayPackPanels(const Algorithm& self, const ConvDesc& d) {
  return self.variant == kBlockedTiles && !d.low_precision() && d.changes_weights &&
         d.hands_plain && d.groups == 1 && d.n() == 1 && d.oh() * d.ow() <= kFewPixels;
}

// Picks strip size and group splits by estimated cycles of the busiest thread: multiply-adds at 2 a
// cycle, copied strips, what others made of the source, and a group's weights once a strip.
void ChooseSplits(const ConvPlan& plan, DirectPlan* p) {
  const ConvDesc& d = plan.run_desc;
  const int64_t group_count = p->groups.size();
  const bool fip = p->fip();
  const double k = static_cast<double>(p->groups.packed_floats) / (kBlock * plan.ocb);
  const double multiply = fip ? kCpu.fip_multiply : 1;
  const int threads = ThreadsFor(multiply * k * plan.ocb * d.n() * d.oh() * d.ow(), plan.threads);
  const bool any_pixels = (p->in_place || p->is_line) && !p->by_row;
  // Pixels a step: a tile, but where those are few, even strips count for more (960->160
  // at 7x7, 2 threads: 28 and 21 pixels take 73 us, 25 and 24 take 66).
  const int64_t tiles = CeilDiv(d.oh() * d.ow(), 14);
  const int64_t unit = !any_pixels ? d.ow() : tiles < 8 * threads ? 1 : 14;
  const int64_t units = any_pixels ? CeilDiv(d.oh() * d.ow(), unit) : d.oh();
  const bool blocked = p->blocked();
  const bool matrix = !blocked && p->in_place;
  const int64_t chunk = p->in_place ? plan.icb : p->icb_chunk;
  const double halo = p->in_place  ? 0
                      : p->is_line ? static_cast<double>((d.kw() - 1) * d.dw()) / d.sw() / unit
                                   : static_cast<double>((d.kh() - 1) * d.dh()) / d.sh();
  const int64_t pixels_per_unit = unit * (p->padded                 ? d.sw() * d.sh()
                                          : blocked && !p->in_place ? d.kw()
                                          : blocked                 ? 1
                                                                    : d.sw() * d.sh());
  const double source_per_unit =  // bytes of one unit in the strip
      pixels_per_unit * (blocked ? 4.0 * chunk * p->pixel : 1.0 * p->unit * p->channels);
  const double terms_per_unit =
      fip ? unit * (plan.icb * p->taps_per_block * kCpu.fip_vector + kCpu.fip_pixel) / 2 : 0;
  const double copy_per_unit =
      (p->in_place ? 0 : kCpu.strip_line * source_per_unit / 64 * CeilDiv(plan.icb, chunk)) +
      terms_per_unit;
  // Of a source of which a thread has its share in the cache, other threads' lines.
  const double own_units = static_cast<double>(d.n()) * units / threads;
  const double others_per_unit =
      kCpu.cache_line / 64.0 * unit * d.sw() * d.sh() *
      (blocked ? 4.0 * plan.icb * p->pixel : 1.0 * p->unit * p->channels);
  const double fma_per_unit = unit * k * plan.ocb / 2 * multiply;
  const double weights =
      (matrix ? kCpu.matrix_weights_line : kCpu.strip_weights_line) * k * plan.ocb;
  // A line's strip is at least as long as what it shares with the next.
  const double shared_bytes = p->is_line ? 2 * halo * source_per_unit : 0;
  const double most_bytes =
      std::max<double>(blocked || p->in_place ? StripBytes() : kPlainStripBytes, shared_bytes);
  double best = std::numeric_limits<double>::infinity();
  for (int64_t per = units, strips = 1; per >= 1; per = NextSmaller(units, per, &strips)) {
    const bool fits =
        (per + halo) * source_per_unit <= most_bytes || (matrix && per * unit <= kMatrixRows);
    if (!fits && per > 1) continue;
    const int64_t last = units - (strips - 1) * per;
    // Few strips of a matrix: shares of its columns that fill all threads, also three of them.
    const int64_t fewest = matrix && strips < threads ? std::min<int64_t>(threads, group_count) : 1;
    for (int64_t splits = fewest; splits <= group_count && splits <= 8 * threads; splits *= 2) {
      if (splits > 1 && p->variant == kDotLanes) break;
      const double share = static_cast<double>(CeilDiv(group_count, splits)) / group_count;
      const auto cost_of = [&](int64_t rows) {
        return kCpu.task + share * (rows * fma_per_unit + weights) + (rows + halo) * copy_per_unit +
               (d.groups > 1 ? share : 1) * std::max(0.0, rows - own_units) * others_per_unit;
      };
      const double cost = cost_of(per), last_cost = cost_of(last);
      const double span =
          Makespan(d.n() * (strips - 1) * splits, cost, d.n() * splits, last_cost, threads) +
          BarrierOf(strips * splits * d.n(), threads);
      if (span < best * 0.995) {
        best = span;
        p->strip_pixels = per * unit;
        p->strips = strips;
        p->group_splits = splits;
      }
    }
  }
}

std::string Applies(const Algorithm& self, const ConvDesc& d, Isa isa) {
  if (d.pooled()) return "register tiles do not pool";
  if (d.algorithm == ConvAlgorithm::kDirect && d.tiles_mix_groups()) {
    return "register tiles multiply channels of other groups by zero, which may be infinite";
  }
  const bool plain_dst = d.dst.channels_last();
  if (plain_dst && d.types.sum != DataType::f32) {
    return "a chain that is not in registers reads float32";
  }
  const bool dot = plain_dst && !d.low_precision() && d.groups == 1 && d.oc() <= kMaxDotChannels;
  switch (self.variant) {
    case kNhwcTiles:
      return d.src.channels_last() ? "" : "src is not nhwc";
    case kDotLanes:
      if (d.src.channels_last()) return "src is nhwc";
      return dot ? "" : "dst is not nhwc of few channels";
    default:
      break;
  }
  if (d.src.channels_last()) return "src is nhwc";
  if (dot) return "dst is nhwc of few channels";
  const bool fip = !d.low_precision() && UsesFip(d, false, isa);
  if (self.variant == kFipTiles) {
    return fip ? "" : "multiplying in pairs is not asked for, or gains nothing";
  }
  return fip && d.algorithm == ConvAlgorithm::kFip ? "multiplying in pairs is asked for" : "";
}

ConvCost Cost(const Algorithm& self, const ConvDesc& d, Isa isa, int threads) {
  // Asked for Winograd it is what remains.
  if (d.algorithm == ConvAlgorithm::kWinograd) return {std::numeric_limits<double>::infinity()};
  const bool fip = self.variant == kFipTiles;
  const double weights = static_cast<double>(d.kh() * d.kw() * d.ic()) * d.oc();
  const double line = MayPackPanels(self, d) ? kCpu.pack_panel_line : kCpu.pack_line;
  double multiply = fip ? kCpu.fip_multiply : 1;
  if (d.src.dtype() == DataType::bf16 && !d.depthwise()) {  // whose sums are too short to tell
    multiply = Bf16Multiply(isa);
  }
  ConvCost cost = DirectSums(d, multiply, threads);
  if (fip) {  // brings a vector more for each block of dst, and of src there
    cost.weights += (CeilDiv(d.ic(), kBlock) + 1.0) * CeilDiv(d.oc(), kBlock) * kBlock;
  }
  cost.packing = PackCycles(d, weights, line + (fip ? kCpu.pack_pairs : 0), threads);
  return cost;
}

void Plan(const Algorithm& self, ConvPlan* plan) {
  const ConvDesc& d = plan->run_desc;
  if (HasBetterAxis(d)) SwapAxes(&plan->run_desc);
  const auto own = std::make_shared<DirectPlan>();
  DirectPlan* p = own.get();
  plan->own = own;
  p->variant = static_cast<DirectVariant>(self.variant);
  if (d.src.dtype() == DataType::bf16) p->family = TileFamily::kBf16;
  if (d.src.dtype() == DataType::u8) p->family = FamilyOfBytes(plan->isa);
  const int64_t per_dword = PerDword(p->family);
  p->pixel = kBlock / per_dword;
  const bool blocked = p->blocked();
  if (!blocked) {
    p->unit = sizeof(float) / per_dword;
    // One channel of bfloat16 and a zero, so that taps are even.
    p->channels = p->family == TileFamily::kBf16 ? std::max<int64_t>(2, d.ic()) : d.ic();
    p->tap_units = (d.dw() == 1 ? d.kw() : 1) * p->channels;
    p->tap_length = p->odd_taps() ? p->tap_units / 2 : p->Dwords(p->tap_units);
    p->px_stride = d.sw() * p->channels;
  }
  // A kernel row of an NHWC source of low precision is as a pixel of so many channels.
  const bool joined = !blocked && p->low_precision();
  p->groups = p->variant == kDotLanes
                  ? DotGroup(*plan)
                  : MakeOutputGroups(d, plan->isa, joined ? p->tap_units : d.ic(),
                                     d.kh() * (joined && d.dw() == 1 ? 1 : d.kw()),
                                     IsTiled(*p) && !p->low_precision(), per_dword);
  const bool strided =
      blocked && !p->fip() && !p->words() && !d.pointwise() && IsStridedInPlace(d, plan->isa);
  // Low-precision pixels are read in place where they are whole dwords.
  const bool whole = !p->words() && (blocked || d.ic() % per_dword == 0);
  p->in_place = (d.pointwise() && whole) || strided;
  // A copy for each kernel column costs more than tiles that end with the row, where that is long
  // enough for tiles to pay.
  p->padded = p->low_precision() && blocked && !p->in_place && d.kw() > 1 && d.ow() >= kShortestRow;
  p->is_line = !blocked && !p->in_place && d.ih() == 1 && d.oh() == 1 && d.kh() == 1;
  p->by_row = strided || p->padded || (!blocked && !p->in_place && !p->is_line);
  p->taps_per_block = d.kh() * d.kw();
  if (blocked) {
    p->px_stride = strided || p->padded ? d.sw() * p->pixel : p->pixel;
    p->row_stride = d.sh() * d.iw() * p->pixel;
  }
  int64_t most_blocks = 1;  // source blocks of the widest group
  for (const OutputGroup& g : p->groups.list) {
    most_blocks = std::max(most_blocks, g.icb_end - g.icb_begin);
  }
  p->icb_chunk = most_blocks;
  // A sum late in the chain reads the old dst after the last chunk: one chunk.
  const bool sum_on_tile = d.dst.blocked() && plan->epilogue.rest.HasSum();
  // Nor do chunks of listed blocks lie alike.
  const bool listed = p->in_place && !d.src_blocks.empty();
  // Sums of low precision do not leave the registers.
  if (IsTiled(*p) && !p->low_precision() && !sum_on_tile && !listed) {
    const int64_t block_bytes = 4 * kBlock * d.kh() * d.kw() * p->groups.widest_blocks * kBlock;
    const int64_t budget = p->in_place ? kInPlaceWeightsBytes : kWeightsChunkBytes;
    const int64_t fit = std::max<int64_t>(1, budget / std::max<int64_t>(1, block_bytes));
    p->icb_chunk = CeilDiv(most_blocks, CeilDiv(most_blocks, fit));
  }
  const int64_t chunks = p->fip() ? CeilDiv(plan->icb, p->icb_chunk) : 0;
  const int64_t trailer = p->fip()             ? p->pairs_floats(plan->ocb, chunks)
                          : IsBytes(p->family) ? plan->ocb * kBlock
                                               : 0;
  plan->pack_key = {self.name, d.src.dtype(),
                    p->groups.blocking() + (joined && d.dw() != 1 ? 32 : 0) + 64 * chunks};
  plan->packed_bytes = (p->groups.packed_floats + trailer) * sizeof(float);
  if (plan->empty()) return;
  p->pass_blocks = sum_on_tile || p->low_precision() ? p->icb_chunk : PassBlocks(*p, plan->isa);
  ChooseSplits(*plan, p);
  p->packs_panels = MayPackPanels(self, d) && p->strips == 1;
  if (p->packs_panels) {
    plan->packed_bytes = 0;
    plan->reads_plain_weights = true;
  }
  if (p->fip() || p->packs_panels) {
    p->scaled.count = p->icb_chunk * p->taps_per_block * kBlock * p->groups.widest_blocks * kBlock;
  }
  const int64_t row_pixels = p->is_line ? p->strip_pixels : std::max<int64_t>(1, d.ow());
  LayOutStrip(*plan, p->in_place ? 0 : p->strip_pixels / row_pixels, p);
  if (p->low_precision()) {  // whose tiles count bytes
    for (int64_t& offset : p->tap_offsets) offset *= p->unit;
  }
  plan->tasks = d.n() * p->strips * p->group_splits;
  if (d.dst.channels_last()) {
    p->row.count = p->strip_pixels * (p->variant == kDotLanes ? d.oc() : plan->ocb * kBlock);
  }
  p->strip = plan->scratch.Book<float>("strip", p->strip.count, plan->threads);
  p->row = plan->scratch.Book<float>("row", p->row.count, plan->threads);
  p->scaled = plan->scratch.Book<float>("scaled", p->scaled.count, plan->threads);
  if (p->fip()) {  // fused with depthwise it takes all rows at once
    p->pairs.Book(p->in_place ? d.oh() * d.ow() : p->strip_pixels, 1, plan->threads,
                  &plan->scratch);
  }
  const int64_t task_groups = CeilDiv(p->groups.size(), p->group_splits);
  plan->blocking = {{"strip_pixels", p->strip_pixels},
                    {"strip_rows", p->strip_rows},
                    {"source_blocks", p->icb_chunk},
                    {"task_blocks", task_groups * p->groups.widest_blocks},
                    {"lane_blocks", p->scaled.count > 0 ? p->groups.widest_blocks : 0}};
}

}  // namespace

const Algorithm kDirect = {"direct", kBlockedTiles, true,      Applies,        Cost,
                           Plan,     PackDirect,    RunDirect, DirectExponent, SuitDirect};

}  // namespace bd
