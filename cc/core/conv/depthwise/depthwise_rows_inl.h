// Depthwise rows, of which the type of src is a parameter; included by the per-ISA kernels only.
// The contract is depthwise_kernel.h.
//
// A row splits into even tiles of at most kPixels pixels, of which one vector after the
// other is made, with an accumulator a pixel. Of windows known at compile time it holds a
// kernel row of weights in registers and loads every source vector once, for all the taps
// that see it. Out of the L1 cache, 3x3: Zen 4 with AVX-512 a multiply-add a cycle (9.0
// cycles a pixel where a load for each of them took 11.3); Zen 3 with AVX2 12.1, where 6
// pixels of two vectors took 13.8 and the pipes of multiply-adds and clamps have work for 11.
#pragma once

#include "cc/base/cpu/prefetch.h"
#include "cc/core/conv/depthwise/depthwise_kernel.h"
#include "cc/core/gemm/tiles/epilogue_inl.h"
#include "cc/simd/convert/convert.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

#if defined(BD_AVX512)
constexpr int kPixels = 14;
#else
constexpr int kPixels = 10;  // of 16 registers, beside 5 weights and a source vector
#endif

// With AVX-512 a tile asks for the lines of dst so many pixels ahead of its own, 250 cycles of
// 3x3: the best of 28, 56 and 112. (With AVX2 that changes nothing.)
constexpr int kAhead = 28;

template <typename Src>
alignas(64) constexpr Src kZeros[kBlock] = {};

inline Vec LoadSource(const float* p) { return LoadOnce(p); }
inline Vec LoadSource(const Bfloat16* p) { return LoadAs(p); }

// A row of src that a tile adds, and its weights: elements and floats from where these are.
template <typename T>
struct OneRow {
  const T* row;
  const float* weights;

  void Move(int64_t elements) {
    row += elements;
    __asm__("" : "+r"(row));  // one address, and all others at distances known from it
  }
  Vec Weights(int64_t at) const { return Load(weights + at); }
  Vec Source(int64_t at, bool outside) const { return LoadSource(outside ? kZeros<T> : row + at); }
  static Vec Dot(Vec acc, Vec x, Vec w) { return Fma(x, w, acc); }
};

// What a type of tensors gives its rows:
//   Src                          elements of src
//   Tile<kPx>(a, p0, dst, add)   pixels [p0, p0 + kPx) at dst, of sums to which add(sums, rows)
//                                adds OneRow, or what has its members, of all rows there are
//   Run(tile, a, p0, px)         calls such a tile for its place in the row

// Windows of kKw columns, kSw apart, dense. A tile at an end of the row (kEnd) may reach
// kKw / 2 columns beyond the source.
template <typename Type, int kPx, int kKw, int kSw, bool kEnd>
void FixedTile(const DepthwiseArgs& a, int64_t p0, void* dst) {
  constexpr int kColumns = (kPx - 1) * kSw + kKw, kReach = kEnd ? kKw / 2 : 0;
  const int64_t first = p0 * kSw - a.pad_left;  // source pixel of column 0
  Type::template Tile<kPx>(a, p0, dst, [=, &a](auto& acc, auto rows) {
    rows.Move(first * kBlock);
    decltype(rows.Weights(0)) weights[kKw];
    BD_UNROLL
    for (int t = 0; t < kKw; ++t) weights[t] = rows.Weights(t * kBlock);
    BD_UNROLL
    for (int c = 0; c < kColumns; ++c) {
      const bool outside =
          (c < kReach && first + c < 0) || (c >= kColumns - kReach && first + c >= a.iw);
      const auto x = rows.Source(c * kBlock, outside);
      BD_UNROLL
      for (int t = kKw - 1; t >= 0; --t) {  // ever younger pixels
        const int from = c - t;
        if (from < 0 || from % kSw != 0 || from / kSw >= kPx) continue;
        acc[from / kSw][0] = rows.Dot(acc[from / kSw][0], x, weights[t]);
      }
    }
  });
}

// Any window.
template <typename Type, int kPx>
void AnyTile(const DepthwiseArgs& a, int64_t p0, void* dst) {
  const int64_t first = p0 * a.sw - a.pad_left;
  Type::template Tile<kPx>(a, p0, dst, [=, &a](auto& acc, auto rows) {
    for (int64_t t = 0; t < a.kw; ++t) {
      const auto weights = rows.Weights(t * kBlock);
      BD_UNROLL
      for (int p = 0; p < kPx; ++p) {
        const int64_t x = first + p * a.sw + t * a.dw;
        acc[p][0] = rows.Dot(acc[p][0], rows.Source(x * kBlock, x < 0 || x >= a.iw), weights);
      }
    }
  });
}

using TileFn = void (*)(const DepthwiseArgs&, int64_t, void*);

// Tiles of 1 .. 14 pixels; beyond kPixels none is asked for.
template <typename Type, int kPx, int kKw, int kSw, bool kEnd>
constexpr TileFn TileOrNull() {
  if constexpr (kPx <= kPixels) return FixedTile<Type, kPx, kKw, kSw, kEnd>;
  return nullptr;
}

template <typename Type, int kKw, int kSw, bool kEnd>
struct FixedTiles {
#define BD_TILE(px, end) TileOrNull<Type, px, kKw, kSw, end>()
  static constexpr TileFn kBySize[14] = {BD_1_TO_14(BD_TILE, kEnd)};
#undef BD_TILE
};

// A row that reaches at most kKw / 2 columns beyond either end of the source. Of two tiles
// and more each has at least two pixels, so that only the first and the last do.
template <typename Type, int kKw, int kSw>
void FixedRow(const DepthwiseArgs& a) {
  const int64_t tiles = (a.ow + kPixels - 1) / kPixels;
  const int64_t narrow = a.ow / tiles, wide_tiles = a.ow % tiles;
  for (int64_t i = 0, p = 0, px; i < tiles; ++i, p += px) {
    px = narrow + (i < wide_tiles);
    const bool inside = i > 0 && i + 1 < tiles;
    const auto& by_size = inside ? FixedTiles<Type, kKw, kSw, false>::kBySize
                                 : FixedTiles<Type, kKw, kSw, true>::kBySize;
    Type::Run(by_size[px - 1], a, p, px);
  }
}

template <typename Type>
void AnyRow(const DepthwiseArgs& a) {
  constexpr int kPx = 4;
  int64_t p = 0;
  for (; p + kPx <= a.ow; p += kPx) Type::Run(AnyTile<Type, kPx>, a, p, kPx);
  for (; p < a.ow; ++p) Type::Run(AnyTile<Type, 1>, a, p, 1);
}

template <typename Type>
void RunTiles(const DepthwiseArgs& a) {
  const int64_t past = (a.ow - 1) * a.sw + a.kw - a.pad_left - a.iw;  // columns, if dw == 1
  if (a.dw == 1 && a.pad_left <= a.kw / 2 && past <= a.kw / 2) {
    if (a.kw == 3 && a.sw == 1) return FixedRow<Type, 3, 1>(a);
    if (a.kw == 3 && a.sw == 2) return FixedRow<Type, 3, 2>(a);
    if (a.kw == 5 && a.sw == 1) return FixedRow<Type, 5, 1>(a);
    if (a.kw == 5 && a.sw == 2) return FixedRow<Type, 5, 2>(a);
  }
  AnyRow<Type>(a);
}

}  // namespace
}  // namespace bd::BD_ISA
