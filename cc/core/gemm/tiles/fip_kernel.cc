// Tiles of the fast inner product: fip_kernel.h. Compiled once per ISA; only AVX-512
// reads the operand of an addition as a broadcast from memory, without which the tiles are
// slower than multiply-adds alone (105 GFLOP/s; a broadcast into a register takes the place
// of an addition).
#include "cc/core/gemm/tiles/fip_kernel.h"

#include <algorithm>

#include "cc/core/gemm/tiles/each_tile_inl.h"
#include "cc/core/gemm/tiles/epilogue_inl.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {

#if defined(BD_AVX512)

namespace {

template <typename V>
BD_INLINE V MultiplyPair(float sign, const float* x, V y1, V y2, V acc) {
  if (sign > 0) return Fma(AddAt(x, y2), AddAt(x + 1, y1), acc);
  return NegFma(SubAt(y2, x), SubAt(y1, x + 1), acc);
}

// Rows of the next group's weights on their way. One pointer that moves: GCC would keep
// sixteen distances in memory.
template <int kBlocks>
BD_INLINE void AskForRows(int rows, const float*& prefetch, int64_t step) {
  BD_UNROLL
  for (int i = 0; i < rows; ++i) {
    BD_UNROLL
    for (int b = 0; b < kBlocks; ++b) __builtin_prefetch(prefetch + b * kBlock, 0, 2);
    prefetch += step;
    __asm__("" : "+r"(prefetch));
  }
}

// The 16 channels of a tap: each pair is followed by a channel or two by themselves, so
// that both kinds of pipes have work all the time.
template <int kBlocks, int kPx, typename Last>
BD_INLINE void MultiplyBlock(Vec (&acc)[kPx][kBlocks], Last (&last)[kPx], const float* src,
                             const float* w, const float*& prefetch, int64_t prefetch_step) {
  constexpr int kFull = kBlocks - 1;
  BD_UNROLL
  for (int k = 0; k < kNumChannelPairs; ++k) {
    AskForRows<kBlocks>(3, prefetch, prefetch_step);
    const ChannelPair pair = kChannelPairs[k];
    const float* row = w + pair.c * kBlocks * kBlock;
    Vec y1[kBlocks], y2[kBlocks];
    BD_UNROLL
    for (int b = 0; b < kFull; ++b) {
      y1[b] = Load(row + b * kBlock);
      y2[b] = Load(row + (kBlocks + b) * kBlock);
    }
    const Last last_y1 = To(Load(row + kFull * kBlock), Last());
    const Last last_y2 = To(Load(row + (kBlocks + kFull) * kBlock), Last());
    const int single = kSingleChannels[k];
    const float* single_row = w + single * kBlocks * kBlock;
    Vec y[kBlocks];
    BD_UNROLL
    for (int b = 0; b < kFull; ++b) y[b] = Load(single_row + b * kBlock);
    const Last last_y = To(Load(single_row + kFull * kBlock), Last());
    BD_UNROLL
    for (int p = 0; p < kPx; ++p) {
      const float* x = src + p * kBlock;
      BD_UNROLL
      for (int b = 0; b < kFull; ++b) {
        acc[p][b] = FmaAt(x + single, y[b], acc[p][b]);
        acc[p][b] = MultiplyPair(pair.sign, x + pair.c, y1[b], y2[b], acc[p][b]);
      }
      last[p] = FmaAt(x + single, last_y, last[p]);
      last[p] = MultiplyPair(pair.sign, x + pair.c, last_y1, last_y2, last[p]);
    }
  }
}

// Channels [first, first + count) by themselves.
template <int kBlocks, int kPx, typename Last>
BD_INLINE void MultiplySingles(Vec (&acc)[kPx][kBlocks], Last (&last)[kPx], const float* src,
                               int64_t first, int64_t count, const float* w) {
  constexpr int kFull = kBlocks - 1;
  for (int64_t c = first; c < first + count; ++c) {
    const float* row = w + c * kBlocks * kBlock;
    const Last last_y = To(Load(row + kFull * kBlock), Last());
    BD_UNROLL
    for (int p = 0; p < kPx; ++p) {
      BD_UNROLL
      for (int b = 0; b < kFull; ++b) {
        acc[p][b] = FmaAt(src + p * kBlock + c, Load(row + b * kBlock), acc[p][b]);
      }
      last[p] = FmaAt(src + p * kBlock + c, last_y, last[p]);
    }
  }
}

template <int kBlocks, int kPx, typename Last>
__attribute__((noinline)) void FipTile(const TileArgs& a) {
  constexpr int kFull = kBlocks - 1;
  Accumulators<kBlocks, kPx> tile;
  tile.AskForSums(a.epilogue);
  Last last[kPx];
  BD_UNROLL
  for (int b = 0; b < kBlocks; ++b) {
    const Vec channel = Load(a.fip.channel_terms + b * kBlock);
    BD_UNROLL
    for (int p = 0; p < kPx; ++p) tile.acc[p][b] = AddAt(a.fip.pixel_terms + p, channel);
  }
  BD_UNROLL
  for (int p = 0; p < kPx; ++p) last[p] = To(tile.acc[p][kFull], Last());
  const float* w = a.weights;
  const float* prefetch = a.prefetch;
  for (int64_t t = 0; t < a.taps; ++t) {
    const float* src = a.src + a.tap_offsets[t];
    BD_UNROLL
    for (int p = 0; p < kPx; ++p) __builtin_prefetch(src + (kPx + p) * kBlock, 0, 3);
    AskForRows<kBlocks>(1, prefetch, a.prefetch_step);
    MultiplyBlock<kBlocks, kPx>(tile.acc, last, src, w, prefetch, a.prefetch_step);
    MultiplySingles<kBlocks, kPx>(tile.acc, last, src, kBlock - 1, 1, w);
    w += kBlock * kBlocks * kBlock;
  }
  for (int64_t t = 0; t < a.tail_taps; ++t) {
    const float* src = a.src + a.tap_offsets[a.taps + t];
    MultiplySingles<kBlocks, kPx>(tile.acc, last, src, 0, a.tail_length, w);
    w += a.tail_length * kBlocks * kBlock;
  }
  BD_UNROLL
  for (int p = 0; p < kPx; ++p) tile.acc[p][kFull] = From(last[p]);
  tile.Scale(a.epilogue);
  tile.Finish(a.epilogue, a.dst);
}

constexpr int kPixelsTogether = kLanes / 2;  // whose terms and squares are one reduction's vectors

// Of kPx pixels from `first` on: terms and squares, which it adds to *all_squares, and the vectors
// whose lanes are to be added for the magnitudes. Pairs are neighbours: lane c of x *
// OddsToEvens(x) is x[c] x[c + 1]. Pixels are summed in one order, so what is said of a pixel is
// the same in any range of them.
template <int kPx>
BD_INLINE void SumPixels(const FipSourceArgs& a, int64_t first, Vec signs, Vec* magnitudes,
                         Vec* all_squares) {
  // Rows of a tap are few lines among many far away: nobody but this asks for them in time.
  constexpr int kAhead = 2 * kPixelsTogether;
  Vec sums[kLanes], of_magnitudes[kPx];
  BD_UNROLL
  for (int i = 0; i < kLanes; ++i) sums[i] = Zero();
  BD_UNROLL
  for (int p = 0; p < kPx; ++p) of_magnitudes[p] = Zero();
  for (int64_t t = 0; t < a.taps; ++t) {
    const float* src = a.src + a.tap_offsets[t] + first * kBlock;
    BD_UNROLL
    for (int p = 0; p < kPx; ++p) {
      const Vec x = Load(src + p * kBlock);
      __builtin_prefetch(src + (kAhead + p) * kBlock, 0, 3);
      sums[p] = Fma(x, OddsToEvens(x), sums[p]);
      sums[kPixelsTogether + p] = Fma(x, x, sums[kPixelsTogether + p]);
      of_magnitudes[p] = Add(of_magnitudes[p], Abs(x));
    }
  }
  BD_UNROLL
  for (int p = 0; p < kPx; ++p) {
    sums[p] = Mul(sums[p], signs);
    magnitudes[p] = of_magnitudes[p];
  }
  alignas(64) float all[kLanes];
  Store(all, ReduceAddEach(sums));
  StoreN(a.terms + first, LoadN(all, kPx), kPx);
  const Vec squares = LoadN(all + kPixelsTogether, kPx);
  StoreN(a.squares + first, squares, kPx);
  *all_squares = Add(*all_squares, squares);
}

float SourceTerms(const FipSourceArgs& a) {
  alignas(64) float lanes[kBlock] = {};
  for (const ChannelPair& pair : kChannelPairs) lanes[pair.c] = -pair.sign;
  const Vec signs = Load(lanes);
  Vec all_squares = Zero();
  for (int64_t first = 0; first < a.px; first += kLanes) {
    const int64_t px = std::min<int64_t>(a.px - first, kLanes);
    Vec magnitudes[kLanes];
    int64_t p = 0;
    for (; p + kPixelsTogether <= px; p += kPixelsTogether) {
      SumPixels<kPixelsTogether>(a, first + p, signs, magnitudes + p, &all_squares);
    }
    for (; p < px; ++p) SumPixels<1>(a, first + p, signs, magnitudes + p, &all_squares);
    for (; p < kLanes; ++p) magnitudes[p] = Zero();
    StoreN(a.sums + first, ReduceAddEach(magnitudes), px);
  }
  return ReduceAdd(all_squares);
}

bool MarkUnpaired(const FipRangeArgs& a) {
  const Vec most = Set1(a.most), least = Set1(a.least), shape = Set1(a.shape);
  bool any = false;
  for (int64_t first = 0; first < a.rows; first += kLanes) {
    const int64_t rows = std::min<int64_t>(a.rows - first, kLanes);
    const Vec squares = LoadN(a.squares + first, rows), sums = LoadN(a.sums + first, rows);
    Vec all = LoadN(a.all + first, rows);
    if (a.all != a.sums) StoreN(a.all + first, all = Add(all, sums), rows);
    // Comparisons with NaN are false. Most rows are in range, and lie in whole vectors of such.
    if (All(Less(squares, most)) && All(Less(least, all)) &&
        All(Less(Mul(shape, squares), Mul(sums, sums)))) {
      continue;
    }
    for (int64_t r = first; r < first + rows; ++r) {
      const bool in_range = a.squares[r] <= a.most && a.all[r] >= a.least &&
                            a.sums[r] * a.sums[r] >= a.shape * a.squares[r];
      if (in_range) continue;
      a.unpaired[r] = 1;
      any = true;
    }
  }
  return any;
}

void Scale(const float* src, float scale, int64_t floats, float* dst) {
  const Vec by = Set1(scale);
  for (int64_t i = 0; i < floats; i += kLanes) Store(dst + i, Mul(by, Load(src + i)));
}

// A loop over arrays that the compiler makes vectors of.
void ColumnSums(int64_t rows, int64_t row_stride, const float* weights, double* squares,
                double* sums) {
  double of_squares[kBlock] = {}, of_magnitudes[kBlock] = {};
  for (int64_t r = 0; r < rows; ++r, weights += row_stride) {
    for (int i = 0; i < kBlock; ++i) {
      const double y = weights[i];
      of_squares[i] += y * y;
      of_magnitudes[i] += __builtin_fabs(y);
    }
  }
  for (int i = 0; i < kBlock; ++i) {
    squares[i] = of_squares[i];
    sums[i] = of_magnitudes[i];
  }
}

void ScaleColumns(int64_t rows, int64_t row_stride, const float* factors, float* weights) {
  const Vec by = Load(factors);
  for (int64_t r = 0; r < rows; ++r, weights += row_stride) Store(weights, Mul(Load(weights), by));
}

void ColumnTerms(int64_t taps, int64_t row_stride, const float* weights, float* terms) {
  Vec sums = Zero();
  for (int64_t t = 0; t < taps; ++t, weights += kBlock * row_stride) {
    for (const ChannelPair& pair : kChannelPairs) {
      const float* y = weights + pair.c * row_stride;
      sums = NegFma(Mul(Set1(pair.sign), Load(y)), Load(y + row_stride), sums);
    }
  }
  Store(terms, sums);
}

template <typename Last, int kBlocks, int kPx>
constexpr TileKernel TileOrNull() {
  if constexpr (kPx <= kMaxFipPixels) return EachTile<FipTile<kBlocks, kPx, Last>, kPx>;
  return nullptr;
}

#define BD_TILE(px, last, b) TileOrNull<last, b, px>()
#define BD_ROWS(last)                                                \
  {                                                                  \
    {BD_1_TO_14(BD_TILE, last, 1)}, { BD_1_TO_14(BD_TILE, last, 2) } \
  }

}  // namespace

constexpr FipKernels kFipKernels = {
    kMaxFipPixels, BD_ROWS(Vec), BD_ROWS(HalfVec), SourceTerms, MarkUnpaired,
    Scale,         ColumnSums,   ScaleColumns,     ColumnTerms,
};

#else

constexpr FipKernels kFipKernels = {};

#endif

}  // namespace bd::BD_ISA
