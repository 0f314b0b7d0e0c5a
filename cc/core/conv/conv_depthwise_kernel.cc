// Depthwise rows. Compiled once per ISA; the contract is conv_depthwise_kernel.h.
//
// A row splits into even tiles of at most kPixels pixels, one accumulator a
// vector and pixel, every weight loaded once a tile. Only the first and the last
// tile reach beyond the source; there the outermost kEdge pixels, the only ones
// whose window can leave it, read zeros instead.
#include "cc/core/conv/conv_depthwise_kernel.h"

#include "cc/core/conv/conv_epilogue_inl.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kPixels = 14;
#elif defined(__AVX2__)
constexpr int kPixels = 6;
#else
constexpr int kPixels = 3;
#endif

alignas(64) constexpr float kZeros[kBlock] = {};

// kKw, kSw: compile-time kernel width and stride with dw == 1, or 0 for run-time
// values. kEdge: pixels at either end of the tile that are checked.
template <int kPx, int kKw, int kSw, int kEdge>
void Tile(const DepthwiseArgs& a, int64_t p0) {
  const int64_t kw = kKw > 0 ? kKw : a.kw;
  const int64_t sw = kSw > 0 ? kSw : a.sw;
  const int64_t dw = kKw > 0 ? 1 : a.dw;
  Accumulators<1, kPx> tile;
  TileEpilogue e = a.epilogue;
  if (e.acc_in != nullptr) e.acc_in += p0 * kBlock;
  e.dst_offset += p0 * kBlock;
  tile.Start(e, 0);
  const float* w = a.weights;
  const int64_t first = p0 * sw - a.pad_left;  // source pixel of tap 0, pixel p0
  for (int64_t h = 0; h < a.kh; ++h, w += kw * kBlock) {
    const float* row = a.rows[h];
    if (row == nullptr) continue;
    BD_UNROLL
    for (int64_t t = 0; t < kw; ++t) {
      Vec weight[kVecsPerBlock];
      BD_UNROLL
      for (int v = 0; v < kVecsPerBlock; ++v) weight[v] = Load(w + t * kBlock + v * kLanes);
      BD_UNROLL
      for (int p = 0; p < kPx; ++p) {
        const int64_t x = first + p * sw + t * dw;
        const bool checked = p < kEdge || p >= kPx - kEdge;
        const float* src = !checked || (x >= 0 && x < a.iw) ? row + x * kBlock : kZeros;
        BD_UNROLL
        for (int v = 0; v < kVecsPerBlock; ++v) {
          tile.acc[p][v] = Fma(Load(src + v * kLanes), weight[v], tile.acc[p][v]);
        }
      }
    }
  }
  tile.Finish(e, a.dst + p0 * kBlock, 0);
}

using TileFn = void (*)(const DepthwiseArgs&, int64_t);

// Tiles of 1 .. 14 pixels; beyond kPixels none is asked for.
template <int kPx, int kKw, int kSw, int kEdge>
constexpr TileFn TileOrNull() {
  if constexpr (kPx <= kPixels) {
    return Tile<kPx, kKw, kSw, kEdge>;
  } else {
    return nullptr;
  }
}

template <int kKw, int kSw, int kEdge>
struct Tiles {
#define BD_TILE(px) TileOrNull<px, kKw, kSw, kEdge>()
  static constexpr TileFn kBySize[14] = {
      BD_TILE(1), BD_TILE(2), BD_TILE(3),  BD_TILE(4),  BD_TILE(5),  BD_TILE(6),  BD_TILE(7),
      BD_TILE(8), BD_TILE(9), BD_TILE(10), BD_TILE(11), BD_TILE(12), BD_TILE(13), BD_TILE(14)};
#undef BD_TILE
};

// A row whose padding reaches at most kEdge pixels from either end.
template <int kKw, int kSw, int kEdge>
void RowOf(const DepthwiseArgs& a) {
  const int64_t tiles = (a.ow + kPixels - 1) / kPixels;
  for (int64_t i = 0; i < tiles; ++i) {
    const int64_t p = a.ow * i / tiles;
    const int64_t px = a.ow * (i + 1) / tiles - p;
    const bool inside = i > 0 && i + 1 < tiles;
    (inside ? Tiles<kKw, kSw, 0>::kBySize : Tiles<kKw, kSw, kEdge>::kBySize)[px - 1](a, p);
  }
}

// Any window: every pixel is checked.
void AnyRow(const DepthwiseArgs& a) {
  constexpr int kPx = kPixels < 4 ? kPixels : 4;
  int64_t p = 0;
  for (; p + kPx <= a.ow; p += kPx) Tile<kPx, 0, 0, kPx>(a, p);
  for (; p < a.ow; ++p) Tile<1, 0, 0, 1>(a, p);
}

void Row(const DepthwiseArgs& a) {
  // The last pixel that starts left of the source, and how far the row ends to
  // the right of it, in pixels.
  const int64_t left = (a.pad_left + a.sw - 1) / a.sw;
  const int64_t past = (a.ow - 1) * a.sw + (a.kw - 1) * a.dw - a.pad_left - (a.iw - 1);
  const int64_t right = past <= 0 ? 0 : (past + a.sw - 1) / a.sw;
  const int64_t edge = left > right ? left : right;
  if (a.dw == 1 && a.kw == 3 && edge <= 1) {
    if (a.sw == 1) return RowOf<3, 1, 1>(a);
    if (a.sw == 2) return RowOf<3, 2, 1>(a);
  }
  if (a.dw == 1 && a.kw == 5) {
    if (a.sw == 1 && edge <= 2) return RowOf<5, 1, 2>(a);
    if (a.sw == 2 && edge <= 1) return RowOf<5, 2, 1>(a);
  }
  AnyRow(a);
}

constexpr DepthwiseKernels kTable = {Row};

}  // namespace

const DepthwiseKernels& GetDepthwiseKernels() { return kTable; }

}  // namespace bd::BD_ISA
