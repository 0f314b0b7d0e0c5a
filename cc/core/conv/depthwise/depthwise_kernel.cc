// Depthwise rows. Compiled once per ISA; the contract is depthwise_kernel.h.
//
// A row splits into even tiles of at most kPixels pixels, of which one vector after the
// other is made, with an accumulator a pixel. Of windows known at compile time it holds a
// kernel row of weights in registers and loads every source vector once, for all the taps
// that see it. Out of the L1 cache, 3x3: Zen 4 with AVX-512 a multiply-add a cycle (9.0
// cycles a pixel where a load for each of them took 11.3); Zen 3 with AVX2 12.1, where 6
// pixels of two vectors took 13.8 and the pipes of multiply-adds and clamps have work for 11.
#include "cc/core/conv/depthwise/depthwise_kernel.h"

#include "cc/base/cpu/prefetch.h"
#include "cc/core/gemm/tiles/epilogue_inl.h"
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

alignas(64) constexpr float kZeros[kBlock] = {};

// Pixels [p0, p0 + kPx) to dst, their sums made by `add` from the row's arguments: all of them,
// where a block is one vector; of others one vector after the other, without a program.
template <int kPx, typename Add>
inline __attribute__((always_inline)) void Tile(const DepthwiseArgs& a, int64_t p0, float* dst,
                                                Add&& add) {
  const auto add_rows = [&](auto& acc, int v) {
    const float* w = a.weights + v;
    for (int64_t h = 0; h < a.kh; ++h, w += a.kw * kBlock) {
      if (a.rows[h] != nullptr) add(acc, a.rows[h] + v, w);
    }
  };
  if constexpr (kVecsPerBlock == 1) {
    Accumulators<1, kPx> tile;
    TileEpilogue e = a.epilogue;
    if (e.acc_in != nullptr) e.acc_in += p0 * kBlock;
    e.dst_offset += p0 * kBlock;
    tile.Start(e);
    BD_UNROLL
    for (int p = 0; p < kPx; ++p) PrefetchToWrite(dst + (kAhead + p) * kBlock);
    add_rows(tile.acc, 0);
    tile.FinishBlocked(e, dst, 0);
  } else {
    const TileEpilogue& e = a.epilogue;
    for (int v = 0; v < kBlock; v += kLanes) {
      Accumulators<1, kPx, 1> tile;
      tile.Begin(e.bias == nullptr ? nullptr : e.bias + v);
      add_rows(tile.acc, v);
      tile.End(e, e.acc_in == nullptr ? nullptr : e.acc_in + p0 * kBlock + v, dst + v, 0);
    }
  }
}

// Windows of kKw columns, kSw apart, dense. A tile at an end of the row (kEnd) may reach
// kKw / 2 columns beyond the source.
template <int kPx, int kKw, int kSw, bool kEnd>
void FixedTile(const DepthwiseArgs& a, int64_t p0, float* dst) {
  constexpr int kColumns = (kPx - 1) * kSw + kKw, kReach = kEnd ? kKw / 2 : 0;
  const int64_t first = p0 * kSw - a.pad_left;  // source pixel of column 0
  Tile<kPx>(a, p0, dst, [=, &a](auto& acc, const float* row, const float* w) {
    const float* columns = row + first * kBlock;
    __asm__("" : "+r"(columns));  // one address, and all others at distances known from it
    Vec weights[kKw];
    BD_UNROLL
    for (int t = 0; t < kKw; ++t) weights[t] = Load(w + t * kBlock);
    BD_UNROLL
    for (int c = 0; c < kColumns; ++c) {
      const float* src = columns + c * kBlock;
      if (c < kReach && first + c < 0) src = kZeros;
      if (c >= kColumns - kReach && first + c >= a.iw) src = kZeros;
      const Vec x = LoadOnce(src);
      BD_UNROLL
      for (int t = kKw - 1; t >= 0; --t) {  // ever younger pixels
        const int from = c - t;
        if (from < 0 || from % kSw != 0 || from / kSw >= kPx) continue;
        acc[from / kSw][0] = Fma(x, weights[t], acc[from / kSw][0]);
      }
    }
  });
}

// Any window.
template <int kPx>
void AnyTile(const DepthwiseArgs& a, int64_t p0, float* dst) {
  const int64_t first = p0 * a.sw - a.pad_left;
  Tile<kPx>(a, p0, dst, [=, &a](auto& acc, const float* row, const float* w) {
    for (int64_t t = 0; t < a.kw; ++t) {
      BD_UNROLL
      for (int p = 0; p < kPx; ++p) {
        const int64_t x = first + p * a.sw + t * a.dw;
        const float* src = x >= 0 && x < a.iw ? row + x * kBlock : kZeros;
        acc[p][0] = Fma(Load(src), Load(w + t * kBlock), acc[p][0]);
      }
    }
  });
}

using TileFn = void (*)(const DepthwiseArgs&, int64_t, float*);

// A tile, and the program that it leaves alone; swish follows for the whole row.
inline void RunTile(TileFn tile, const DepthwiseArgs& a, int64_t p0, int64_t px) {
  const TileEpilogue& e = a.epilogue;
  float* dst = a.dst + p0 * kBlock;
  if (kVecsPerBlock == 1 || e.program == nullptr || SiluFollows(e)) return tile(a, p0, dst);
  alignas(64) float sums[kPixels * kBlock];
  tile(a, p0, sums);
  e.program->kernels->blocked(*e.program, sums, dst, static_cast<int>(px),
                              e.dst_offset + p0 * kBlock, e.channel, e.sample_channel,
                              e.valid_lanes);
}

// Tiles of 1 .. 14 pixels; beyond kPixels none is asked for.
template <int kPx, int kKw, int kSw, bool kEnd>
constexpr TileFn TileOrNull() {
  if constexpr (kPx <= kPixels) {
    return FixedTile<kPx, kKw, kSw, kEnd>;
  } else {
    return nullptr;
  }
}

template <int kKw, int kSw, bool kEnd>
struct FixedTiles {
#define BD_TILE(px) TileOrNull<px, kKw, kSw, kEnd>()
  static constexpr TileFn kBySize[14] = {
      BD_TILE(1), BD_TILE(2), BD_TILE(3),  BD_TILE(4),  BD_TILE(5),  BD_TILE(6),  BD_TILE(7),
      BD_TILE(8), BD_TILE(9), BD_TILE(10), BD_TILE(11), BD_TILE(12), BD_TILE(13), BD_TILE(14)};
#undef BD_TILE
};

// A row that reaches at most kKw / 2 columns beyond either end of the source. Of two tiles
// and more each has at least two pixels, so that only the first and the last do.
template <int kKw, int kSw>
void FixedRow(const DepthwiseArgs& a) {
  const int64_t tiles = (a.ow + kPixels - 1) / kPixels;
  const int64_t narrow = a.ow / tiles, wide_tiles = a.ow % tiles;
  for (int64_t i = 0, p = 0, px; i < tiles; ++i, p += px) {
    px = narrow + (i < wide_tiles);
    const bool inside = i > 0 && i + 1 < tiles;
    const auto& by_size =
        inside ? FixedTiles<kKw, kSw, false>::kBySize : FixedTiles<kKw, kSw, true>::kBySize;
    RunTile(by_size[px - 1], a, p, px);
  }
}

void AnyRow(const DepthwiseArgs& a) {
  constexpr int kPx = 4;
  int64_t p = 0;
  for (; p + kPx <= a.ow; p += kPx) RunTile(AnyTile<kPx>, a, p, kPx);
  for (; p < a.ow; ++p) RunTile(AnyTile<1>, a, p, 1);
}

void RunTiles(const DepthwiseArgs& a) {
  const int64_t past = (a.ow - 1) * a.sw + a.kw - a.pad_left - a.iw;  // columns, if dw == 1
  if (a.dw == 1 && a.pad_left <= a.kw / 2 && past <= a.kw / 2) {
    if (a.kw == 3 && a.sw == 1) return FixedRow<3, 1>(a);
    if (a.kw == 3 && a.sw == 2) return FixedRow<3, 2>(a);
    if (a.kw == 5 && a.sw == 1) return FixedRow<5, 1>(a);
    if (a.kw == 5 && a.sw == 2) return FixedRow<5, 2>(a);
  }
  AnyRow(a);
}

void Row(const DepthwiseArgs& a) {
  RunTiles(a);
  if (SiluFollows(a.epilogue)) a.epilogue.program->kernels->silu(a.dst, a.ow * kBlock);
}

constexpr DepthwiseKernels kTable = {Row};

}  // namespace

const DepthwiseKernels& GetDepthwiseKernels() { return kTable; }

}  // namespace bd::BD_ISA
