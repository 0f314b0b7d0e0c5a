// The one loop over panels of B: register tiles, K in passes, weights brought along.
//
// B is packed in panels of one or two blocks of 16 columns, each [row of B][block][16]. A call
// multiplies the rows of A that its caller lists by some panels:
//
//   for each panel          its weights come to L2 while the one before is multiplied
//     for each pass of K    its weights stay in L1 while all rows of A go by
//       for each run of rows    even tiles, neighbours in one call of a kernel
//
// Who owns what: the caller says where A lies (`rows`, taps) and where C lies and what happens to
// sums (`bind`); the loop owns tile sizes, the order, prefetching, and where partial sums are
// between passes: in C, or, where C cannot hold them, in memory that `bind` names.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "cc/base/bytes.h"
#include "cc/base/cpu/isa.h"
#include "cc/base/size.h"
#include "cc/core/gemm/tiles/gemm_kernel.h"
#include "cc/core/gemm/tiles/low_precision_kernel.h"
#include "cc/core/gemm/tiles/product_kernel.h"

namespace bd {

// Some columns of B, packed.
struct Panel {
  int64_t first_block = 0, blocks = 0;
  int64_t offset = 0;  // floats into the packed matrix
};

// How the rows of A lie, and so which kernels multiply them.
enum class TileFamily {
  kBlocked,   // 16 floats apart, taps of 16
  kStrided,   // any distance, any tap length
  kFip,       // as kBlocked, multiplied in pairs
  kBf16,      // as kStrided, in dwords of two numbers of bfloat16 (low_precision_kernel.h)
  kInt8,      // as kStrided, in dwords of four bytes
  kWords,     // the same in dwords of two bytes that were widened to 16 bits
  kWordSums,  // the same of any words, with nothing after the sums
  kBf16Sums,  // as kBf16, with nothing after the sums; with AVX512_BF16
};

inline bool IsBytes(TileFamily family) {
  return family == TileFamily::kInt8 || family == TileFamily::kWords;
}
inline bool IsBfloat16(TileFamily family) {
  return family == TileFamily::kBf16 || family == TileFamily::kBf16Sums;
}
inline bool IsLowPrecision(TileFamily family) {
  return IsBfloat16(family) || family == TileFamily::kWordSums || IsBytes(family);
}

// Numbers of A, neighbours along K, in what a tile reads at once: 4 bytes of memory.
inline int64_t PerDword(TileFamily family) {
  return family == TileFamily::kInt8 ? 4 : IsLowPrecision(family) ? 2 : 1;
}

// The kernels for a panel by rows - 1, and the rows of the widest of them. Tasks have multiples of
// RowsTogether: of as many, but where a kernel of one row takes any number of them, as with AMX.
const TileKernel* TilesOf(Isa isa, TileFamily family, int64_t blocks, int32_t valid_lanes);
int64_t TilePixels(Isa isa, TileFamily family, int64_t blocks);
int64_t RowsTogether(Isa isa, TileFamily family, int64_t blocks);

// How many rows of A, so many bytes apart, L1 holds a line of each of. Rows a power of two apart
// share sets: 4 KB apart, all of them one set of 8 ways, of which weights take some.
int64_t RowsInCache(int64_t stride_bytes);

// [0, rows) in even tiles of at most `widest` rows; its divisions take as long as 80
// multiply-adds, so it is made once for many passes.
struct EvenTiles {
  int64_t count = 0, narrow = 0, wide = 0;  // tiles, rows of a narrow one, how many have one more

  EvenTiles() = default;
  EvenTiles(int64_t rows, int64_t widest)
      : count(CeilDiv(rows, widest)),
        narrow(rows / std::max<int64_t>(1, count)),
        wide(rows - count * narrow) {}

  // Calls run(first row, rows of a tile, tiles): once for the wide ones, once for the others.
  template <typename Fn>
  void ForRuns(Fn&& run) const {
    if (wide > 0) run(0, narrow + 1, wide);
    if (wide < count) run(wide * (narrow + 1), narrow, count - wide);
  }
};

// Rows of A in segments, inside which they are px_stride units apart.
class EvenRows {
 public:
  EvenRows(const float* a, int64_t rows, int64_t px_stride, int64_t segments = 1,
           int64_t segment_stride = 0, int64_t unit = sizeof(float))
      : a_(a),
        rows_(rows),
        px_stride_(px_stride * unit),
        segments_(segments),
        segment_stride_(segment_stride * unit) {}

  void Start(int64_t widest) {
    if (widest != widest_) even_ = EvenTiles(rows_, widest_ = widest);
  }
  int64_t tiles() const { return segments_ * even_.count; }
  template <typename Emit>
  void ForEach(TileArgs*, Emit&& emit) const {
    for (int64_t s = 0; s < segments_; ++s) {
      even_.ForRuns([&](int64_t p, int64_t px, int64_t tiles) {
        emit(BytesFrom(a_, s * segment_stride_ + p * px_stride_), s * rows_ + p, px, tiles);
      });
    }
  }

 private:
  const float* a_;
  int64_t rows_, px_stride_, segments_, segment_stride_;  // strides in bytes
  int64_t widest_ = 0;
  EvenTiles even_;
};

// Spreads rows of weights over tiles before they are needed; memory delivers evenly then, not in
// bursts.
struct PrefetchShare {
  const float* next;  // null: nothing to bring
  int64_t rows, row_floats, tiles;

  void Start(TileArgs* a) const {
    a->prefetch_step = next == nullptr ? 0 : CeilDiv(row_floats, tiles);
    a->prefetch = next == nullptr ? a->weights : next;
  }
  void Pass(int64_t tiles_done, TileArgs* a) const {
    a->prefetch += tiles_done * rows * a->prefetch_step;
  }
};

// What a call that multiplies in pairs knows beside A and B: fip.h.
struct FipCall {
  const float* terms = nullptr;  // of row 0 of A; null: nothing is in pairs
  const uint8_t* unpaired =
      nullptr;       // of row 0: rows that are multiplied without pairs; null: none
  int exponent = 0;  // of the scale of these rows
  float of_weights = 1.f, of_sums = 1.f;  // what both are multiplied by for it
  float* scaled = nullptr;                // room for a panel whose weights are
  // Of column 0 of B: what sums are multiplied by, 0 where all weights are 0; and terms, NaN where
  // a panel begins that is multiplied without pairs.
  const float *unscale = nullptr, *column_terms = nullptr;

  void Advance(int64_t rows) {
    if (terms != nullptr) terms += rows;
    if (unpaired != nullptr) unpaired += rows;
  }
};

// The same for the tiles of one panel.
struct FipPanel {
  alignas(64) float unscale[kMaxTileBlocks * kBlock], terms[kMaxTileBlocks * kBlock];

  // `columns` columns from `column` on, of `rows` rows of B. Where the epilogue has a scale, sums
  // are multiplied by both.
  void Bind(Isa isa, const FipCall& call, int64_t column, int64_t columns, int64_t rows,
            TileArgs* a);
};

// What a call multiplies. P has the members of Panel that are used here: blocks, offset.
template <typename P>
struct PanelCall {
  Isa isa = Isa::kGeneric;
  TileFamily family = TileFamily::kBlocked;
  const P* panels = nullptr;
  int64_t begin = 0, end = 0;     // the panels of this call
  const float* packed = nullptr;  // B
  int64_t first_row = 0;          // the row of each panel's B at which the call begins
  const float* ahead = nullptr;   // weights to bring along with the last panel
  const int64_t* tap_offsets = nullptr;
  int64_t taps = 0, tap_length = kBlock, tail_taps = 0, tail_length = 0;
  int64_t px_stride = kBlock, unit = sizeof(float);
  int64_t pass_taps = 0;              // a pass of K has so many; 0: all
  bool first = true, last = true;     // whether the call begins the sums, and whether it ends them
  bool asks_ahead = true;             // whether weights are brought along at all
  const float* row_scales = nullptr;  // of bytes: of row 0; or null
  const FipCall* pairs = nullptr;     // kFip

  const float* Weights(int64_t panel, int64_t row) const {
    return packed + panels[panel].offset + row * panels[panel].blocks * kBlock;
  }
  int64_t rows_of_b() const { return taps * tap_length + tail_taps * tail_length; }
};

// Where partial sums of a panel are between passes, where not in C itself.
struct PartialSums {
  float* base = nullptr;  // of row 0
  int64_t block_stride = 0, step = kBlock;
};

// bind(panel, &args, &partial) sets args->dst and epilogue for row 0 of the panel, and args->start
// if it needs it, may point args->weights at another copy of the panel's, and may set
// *partial. rows.Start(widest), rows.tiles(), rows.ForEach(&args, emit)
// list the rows: see EvenRows; emit(a, row of C, rows of a tile, tiles).
template <typename P, typename Bind, typename Rows>
void RunPanels(const PanelCall<P>& call, Bind&& bind, Rows&& rows) {
  TileArgs a = {};
  a.px_stride = call.px_stride;
  a.unit = call.unit;
  a.tap_length = call.tap_length;
  a.tail_length = call.tail_length;
  const int64_t all_taps = call.taps + call.tail_taps;
  const int64_t pass_taps = call.pass_taps > 0 ? call.pass_taps : std::max<int64_t>(1, all_taps);
  for (int64_t g = call.begin; g < call.end; ++g) {
    const int64_t row_floats = call.panels[g].blocks * kBlock;
    PartialSums partial;
    FipPanel in_pairs;
    a.weights = call.Weights(g, call.first_row);
    a.epilogue = TileEpilogue();
    bind(g, &a, &partial);
    if (call.pairs != nullptr) {
      in_pairs.Bind(call.isa, *call.pairs, call.panels[g].first_block * kBlock, row_floats,
                    call.rows_of_b(), &a);
    }
    TileEpilogue& e = a.epilogue;
    const TileEpilogue whole = e;
    float* const dst = a.dst;
    if (partial.base == nullptr) partial = {dst, whole.dst_block_stride, whole.dst_step};
    const float* weights = a.weights;
    const TileKernel* const kernels =
        TilesOf(call.isa, call.family, call.panels[g].blocks, whole.valid_lanes);
    // Tiles of the same packed weights without pairs.
    const TileKernel* const plain =
        TilesOf(call.isa, TileFamily::kStrided, call.panels[g].blocks, whole.valid_lanes);
    const int64_t dst_bytes = whole.tensors.dst_bytes, sum_bytes = whole.tensors.sum_bytes;
    const uint8_t* const unpaired_rows = call.pairs != nullptr ? call.pairs->unpaired : nullptr;
    const bool panel_unpaired = call.pairs != nullptr && std::isnan(in_pairs.terms[0]);
    const auto is_unpaired = [&](int64_t row, int64_t px) {
      return panel_unpaired || std::any_of(unpaired_rows + row, unpaired_rows + row + px,
                                           [](uint8_t unpaired) { return unpaired != 0; });
    };
    rows.Start(std::min(TilePixels(call.isa, call.family, call.panels[g].blocks),
                        RowsInCache(call.px_stride * call.unit)));
    int64_t t0 = 0;
    do {
      const int64_t t1 = std::min(all_taps, t0 + pass_taps);
      const bool first = call.first && t0 == 0, last = call.last && t1 == all_taps;
      a.taps = std::min(t1, call.taps) - std::min(t0, call.taps);
      a.tail_taps = t1 - t0 - a.taps;
      a.tap_offsets = call.tap_offsets + t0;
      a.weights = weights;
      PrefetchShare share;
      share.rows = a.taps * a.tap_length + a.tail_taps * a.tail_length;
      share.row_floats = row_floats;
      share.tiles = rows.tiles();
      weights += share.rows * row_floats;
      share.next = !call.asks_ahead   ? nullptr
                   : t1 < all_taps    ? weights
                   : g + 1 < call.end ? call.Weights(g + 1, call.first_row)
                                      : call.ahead;
      e = whole;
      if (!first) {
        e.bias = nullptr;
        e.acc_scale = 1.f;
        e.acc_step = partial.step;
        e.acc_block_stride = partial.block_stride;
      }
      const void* const sums = first ? whole.acc_in : partial.base;
      float* const to = last ? dst : partial.base;
      if (!last) {
        e.dst_block_stride = partial.block_stride;
        e.clamp = 0;
        e.program = nullptr;
        e.dst_step = partial.step;
        e.row_major &= to == dst;
      }
      share.Start(&a);
      rows.ForEach(&a, [&](const float* src, int64_t row, int64_t px, int64_t tiles) {
        const auto multiply = [&](const TileKernel* family, int64_t tile, int64_t count) {
          const int64_t at = row + tile * px;
          a.src = BytesFrom(src, tile * px * call.px_stride * call.unit);
          a.dst = BytesFrom(to, at * e.dst_step * dst_bytes);
          if (call.pairs != nullptr) a.fip.pixel_terms = call.pairs->terms + at;
          if (call.row_scales != nullptr) e.row_scale = call.row_scales + at;
          e.dst_offset = whole.dst_offset + at * e.operand_step;
          if (sums != nullptr) e.acc_in = BytesFrom(sums, at * e.acc_step * sum_bytes);
          a.tiles = count;
          family[px - 1](a);
          share.Pass(count, &a);
        };
        if (unpaired_rows == nullptr && !panel_unpaired) return multiply(kernels, 0, tiles);
        for (int64_t begin = 0, end; begin < tiles; begin = end) {
          const bool unpaired = is_unpaired(row + begin * px, px);
          end = begin + 1;
          while (end < tiles && is_unpaired(row + end * px, px) == unpaired) ++end;
          multiply(unpaired ? plain : kernels, begin, end - begin);
        }
      });
      t0 = t1;
    } while (t0 < all_taps);
  }
}

}  // namespace bd
