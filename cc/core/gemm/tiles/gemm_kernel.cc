// Register tiles over taps. Compiled once per ISA; the contract is gemm_kernel.h.
//
// Tile sizes: blocks x pixels accumulators plus the weights vectors and one
// broadcast must fit the registers, and pixels + blocks loads must hide behind
// pixels * blocks multiply-adds:
//   avx512   32 registers   2 blocks x 14 pixels = 28 accumulators
//   avx2     16 registers   1 block (2 vectors) x 6 pixels = 12; with half a last block
//                           after it, 3 vectors x 4 pixels
//   generic  16 registers   1 block (4 vectors) x 2 pixels = 8
#include "cc/core/gemm/tiles/gemm_kernel.h"

#include "cc/core/gemm/tiles/each_tile_inl.h"
#include "cc/core/gemm/tiles/epilogue_inl.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

#if defined(BD_AVX512)
constexpr int kTileBlocks = 2;
constexpr int kTilePixels = 14;
constexpr int kJoinedTilePixels = 0;
#elif defined(__AVX2__)
constexpr int kTileBlocks = 1;
constexpr int kTilePixels = 6;
constexpr int kJoinedTilePixels = 4;
#else
constexpr int kTileBlocks = 1;
constexpr int kTilePixels = 2;
constexpr int kJoinedTilePixels = 0;
#endif

#if defined(BD_AVX512)

// One run of `length` source floats against [length][kBlocks][16] weights. The
// tile to the right will want the pixels after this one's: they come to L1.
template <int kBlocks, int kPx, typename Last>
BD_INLINE void MultiplyTap(Accumulators<kBlocks, kPx>& tile, Last (&last)[kPx], const float* src,
                           int64_t length, const float* w, const float* prefetch,
                           int64_t prefetch_step) {
  constexpr int kFull = kBlocks * kVecsPerBlock - 1;  // vectors before the last one
#pragma GCC unroll 2
  for (int64_t i = 0; i < length; ++i) {
    const float* row = w + i * kBlocks * kBlock;
    Vec weights[kFull + 1];
    BD_UNROLL
    for (int v = 0; v < kFull; ++v) weights[v] = Load(row + v * kLanes);
    const Last last_weights = To(Load(row + kFull * kLanes), Last());
    BD_UNROLL
    for (int b = 0; b < kBlocks; ++b) __builtin_prefetch(prefetch + b * kBlock, 0, 2);
    prefetch += prefetch_step;
    __builtin_prefetch(src + (kPx + i) * kBlock, 0, 3);
    BD_UNROLL
    for (int p = 0; p < kPx; ++p) {
      const float* pixel = src + p * kBlock + i;
      BD_UNROLL
      for (int v = 0; v < kFull; ++v) {
        tile.acc[p][v] = Fma(Set1(*pixel), weights[v], tile.acc[p][v]);
      }
      last[p] = Fma(To(*pixel, Last()), last_weights, last[p]);
    }
  }
}

template <int kBlocks, int kPx, typename Last>
__attribute__((noinline)) void Tile(const TileArgs& a) {
  constexpr int kFull = kBlocks * kVecsPerBlock - 1;
  Accumulators<kBlocks, kPx> tile;
  tile.Start(a.epilogue);
  Last last[kPx];
  BD_UNROLL
  for (int p = 0; p < kPx; ++p) last[p] = To(tile.acc[p][kFull], Last());
  const float* w = a.weights;
  const float* prefetch = a.prefetch;
  const int64_t* offset = a.tap_offsets;
  for (int64_t t = 0; t < a.taps; ++t) {
    MultiplyTap<kBlocks, kPx>(tile, last, a.src + *offset++, kBlock, w, prefetch, a.prefetch_step);
    w += kBlock * kBlocks * kBlock;
    prefetch += kBlock * a.prefetch_step;
  }
  for (int64_t t = 0; t < a.tail_taps; ++t) {
    MultiplyTap<kBlocks, kPx>(tile, last, a.src + *offset++, a.tail_length, w, prefetch,
                              a.prefetch_step);
    w += a.tail_length * kBlocks * kBlock;
    prefetch += a.tail_length * a.prefetch_step;
  }
  BD_UNROLL
  for (int p = 0; p < kPx; ++p) tile.acc[p][kFull] = From(last[p]);
  tile.FinishBlocked(a.epilogue, a.dst);
}

#endif

#if !defined(BD_AVX512)

// Where a block is several vectors a tile has few multiply-adds for each row of weights, so
// instructions count: rows are unrolled, what is asked for is asked for once a tap, and each
// register gets the next row as soon as it is free. Out of L1, beside a neighbour that takes
// half of the core (Zen 3, AVX2), multiply-adds alone reach 64 GFLOP/s and these tiles 48; 43
// in a loop with row by row prefetches, 47 in the order that GCC prefers. at(p) is where pixel p
// begins.
template <int kRows, int kRowFloats, int kVecs, int kPx, int kAll, typename At>
BD_INLINE void MultiplyRows(Vec (&acc)[kPx][kAll], At&& at, const float* w) {
  Vec weights[kVecs];
  BD_UNROLL
  for (int v = 0; v < kVecs; ++v) weights[v] = LoadInOrder(w + v * kLanes);
  Vec x = Set1InOrder(at(0));
  BD_UNROLL
  for (int i = 0; i < kRows; ++i) {
    BD_UNROLL
    for (int p = 0; p < kPx; ++p) {
      const bool last = p == kPx - 1;
      BD_UNROLL
      for (int v = 0; v < kVecs; ++v) {
        FmaInto(weights[v], x, &acc[p][v]);
        if (last && i + 1 < kRows) weights[v] = LoadInOrder(w + (i + 1) * kRowFloats + v * kLanes);
      }
      if (!last) x = Set1InOrder(at(p + 1) + i);
      if (last && i + 1 < kRows) x = Set1InOrder(at(0) + i + 1);
    }
  }
}

// Rows that are multiplied at once where K is not known to be a whole number of blocks.
constexpr int kSomeRows = kBlock / 2;

// The rows' share of the weights to come, line by line.
BD_INLINE const float* AskForRows(const float* prefetch, int64_t floats) {
  for (int64_t i = 0; i < floats; i += kBlock) __builtin_prefetch(prefetch + i, 0, 2);
  return prefetch + floats;
}

// Of the last block the first vectors only, so that there are kVecs: others are no channels.
template <int kBlocks, int kPx, int kVecs>
void Tile(const TileArgs& a) {
  constexpr int kRowFloats = kBlocks * kBlock;
  const float* first = a.src;
  const float* prefetch = a.prefetch;
  float* dst = a.dst;
  TileEpilogue e = a.epilogue;
  for (int64_t left = a.tiles; left > 0; --left) {
    Accumulators<kBlocks, kPx> tile;
    tile.Start(e);
    const float* w = a.weights;
    for (int64_t t = 0; t < a.taps; ++t) {
      const float* src = first + a.tap_offsets[t];
      BD_UNROLL
      for (int p = 0; p < kPx; ++p) __builtin_prefetch(src + (kPx + p) * kBlock, 0, 3);
      prefetch = AskForRows(prefetch, kBlock * a.prefetch_step);
      MultiplyRows<kBlock, kRowFloats, kVecs>(
          tile.acc, [&](int p) { return src + p * kBlock; }, w);
      w += kBlock * kRowFloats;
    }
    for (int64_t t = 0; t < a.tail_taps; ++t) {
      const float* src = first + a.tap_offsets[a.taps + t];
      prefetch = AskForRows(prefetch, a.tail_length * a.prefetch_step);
      const auto at = [&](int p) { return src + p * kBlock; };
      const float* const end = src + a.tail_length;
      for (; src + kSomeRows <= end; src += kSomeRows, w += kSomeRows * kRowFloats) {
        MultiplyRows<kSomeRows, kRowFloats, kVecs>(tile.acc, at, w);
      }
      for (; src < end; ++src, w += kRowFloats) {
        MultiplyRows<1, kRowFloats, kVecs>(tile.acc, at, w);
      }
    }
    tile.FinishBlocked(e, dst);
    first += kPx * kBlock;
    dst += kPx * e.dst_step;
    e.Advance(kPx);
  }
}

#endif

// The same for rows any distance apart: one tap.
#if defined(BD_AVX512)

// Five bases, each with a scaled index of 0, 1 or 2 strides, reach 14 rows without a spilled
// pointer.
template <int kBlocks, int kPx, int kVecs>
BD_INLINE void MultiplyStrided(Vec (&acc)[kPx][kVecs], const float* src, int64_t stride,
                               int64_t length, const float* w, const float* prefetch,
                               int64_t prefetch_step) {
  constexpr int kPxPerBase = 3;
  constexpr int kBases = (kPx + kPxPerBase - 1) / kPxPerBase;
  const float* base[kBases];
  BD_UNROLL
  for (int j = 0; j < kBases; ++j) base[j] = src + kPxPerBase * j * stride;
  for (int64_t i = 0; i < length; ++i) {
    Vec weights[kVecs];
    BD_UNROLL
    for (int v = 0; v < kVecs; ++v) weights[v] = Load(w + v * kLanes);
    BD_UNROLL
    for (int b = 0; b < kBlocks; ++b) __builtin_prefetch(prefetch + b * kBlock, 0, 2);
    prefetch += prefetch_step;
    BD_UNROLL
    for (int k = 0; k < kPx * kVecs; ++k) {
      const int p = k / kVecs, v = k % kVecs;
      const float* x = base[p / kPxPerBase] + p % kPxPerBase * stride;
      acc[p][v] = FmaAt(x, weights[v], acc[p][v]);
    }
    BD_UNROLL
    for (int j = 0; j < kBases; ++j) ++base[j];
    w += kBlocks * kBlock;
  }
}

#else

// p, of which the compiler does not know how it was computed: it would add up strides and rows for
// each broadcast, where a register for each row of A is enough.
BD_INLINE const float* InRegister(const float* p) {
  __asm__("" : "+r"(p));
  return p;
}

template <int kBlocks, int kPx, int kVecs>
BD_INLINE void MultiplyStrided(Vec (&acc)[kPx][kVecs], const float* src, int64_t stride,
                               int64_t length, const float* w, const float* prefetch,
                               int64_t prefetch_step) {
  constexpr int kRowFloats = kBlocks * kBlock;
  const float* pixel[kPx];
  BD_UNROLL
  for (int p = 0; p < kPx; ++p) pixel[p] = InRegister(src + p * stride);
  const auto at = [&](int p) { return pixel[p]; };
  AskForRows(prefetch, length * prefetch_step);
  int64_t left = length;
  for (; left >= kSomeRows; left -= kSomeRows, w += kSomeRows * kRowFloats) {
    MultiplyRows<kSomeRows, kRowFloats, kVecs>(acc, at, w);
    BD_UNROLL
    for (int p = 0; p < kPx; ++p) pixel[p] = InRegister(pixel[p] + kSomeRows);
  }
  for (; left > 0; --left, w += kRowFloats) {
    MultiplyRows<1, kRowFloats, kVecs>(acc, at, w);
    BD_UNROLL
    for (int p = 0; p < kPx; ++p) pixel[p] = InRegister(pixel[p] + 1);
  }
}

#endif

template <int kBlocks, int kPx>
void StridedTile(const TileArgs& a) {
  const float* src = a.src;
  const float* prefetch = a.prefetch;
  float* dst = a.dst;
  TileEpilogue e = a.epilogue;
  for (int64_t left = a.tiles; left > 0; --left) {
    Accumulators<kBlocks, kPx> tile;
    if (e.scale == nullptr) {
      tile.Start(e);
    } else {
      tile.Begin(nullptr);
    }
    const float* w = a.weights;
    for (int64_t t = 0; t < a.taps + a.tail_taps; ++t) {
      const int64_t length = t < a.taps ? a.tap_length : a.tail_length;
      MultiplyStrided<kBlocks, kPx>(tile.acc, src + a.tap_offsets[t], a.px_stride, length, w,
                                    prefetch, a.prefetch_step);
      w += length * kBlocks * kBlock;
      prefetch += length * a.prefetch_step;
    }
    if (e.scale != nullptr) tile.Scale(e);
    tile.Finish(e, dst);
    src += kPx * a.px_stride;
    dst += kPx * e.dst_step;
    e.Advance(kPx);
  }
}

enum class TileKind { kWhole, kHalf, kStrided };

// Pixels beyond the ISA's widest tile are null: the driver never asks for them.
template <TileKind kKind, int kBlocks, int kPx>
constexpr TileKernel TileOrNull() {
  constexpr bool kHalf = kKind == TileKind::kHalf;
  if constexpr (kPx > (kBlocks <= kTileBlocks ? kTilePixels : kHalf ? kJoinedTilePixels : 0)) {
    return nullptr;
  } else if constexpr (kKind == TileKind::kStrided) {
    return StridedTile<kBlocks, kPx>;
  } else {
#if defined(BD_AVX512)
    if constexpr (kHalf) return EachTile<Tile<kBlocks, kPx, HalfVec>, kPx>;
    return EachTile<Tile<kBlocks, kPx, Vec>, kPx>;
#else
    return Tile<kBlocks, kPx, kBlocks * kVecsPerBlock - (kHalf ? kVecsPerBlock / 2 : 0)>;
#endif
  }
}

#define BD_TILE(px, kind, b) TileOrNull<TileKind::kind, b, px>()
#define BD_ROWS(kind)                                                \
  {                                                                  \
    {BD_1_TO_14(BD_TILE, kind, 1)}, { BD_1_TO_14(BD_TILE, kind, 2) } \
  }

}  // namespace

constexpr GemmKernels kGemmKernels = {
    kTileBlocks, kTilePixels, kJoinedTilePixels, BD_ROWS(kWhole), BD_ROWS(kHalf), BD_ROWS(kStrided),
};

}  // namespace bd::BD_ISA
