// Depthwise rows of bytes. Compiled once per ISA; the contract is depthwise_bytes_kernel.h.
//
// A row splits into tiles of kPixels pixels, of which one vector after the other is made; of
// windows known at compile time a tile holds a kernel row of weights in registers and loads each
// source vector once.
#include "cc/core/conv/depthwise/depthwise_bytes_kernel.h"

#include "cc/core/gemm/tiles/narrow_epilogue_inl.h"
#include "cc/simd/convert/int8.h"

namespace bd::BD_ISA {
namespace {

#if defined(BD_AVX512)
constexpr int kPixels = 14;
#else
constexpr int kPixels = 7;  // of 16 registers, beside 5 weights, a source vector and a product
#endif

#if defined(BD_AVX512_VNNI)

constexpr bool kQuads = true;
inline SignedQuads LoadWeights(const float* p) {
  return LoadQuads(reinterpret_cast<const int8_t*>(p));
}
inline UnsignedQuads LoadSource(const float* p) {
  return LoadQuads(reinterpret_cast<const uint8_t*>(p));
}
inline IVec Dot(IVec acc, UnsignedQuads x, SignedQuads weights) {
  return DotQuads(acc, x, weights);
}

void DwordRow(const DwordRowArgs& a) {
  alignas(16) uint8_t zeros[kBlock];
  for (uint8_t& zero : zeros) zero = a.zero;
  uint8_t* dst = reinterpret_cast<uint8_t*>(a.dst);
  const uint8_t* const row = a.rows[0];
  const int64_t last = row == nullptr || a.dw != 1 ? -1 : a.iw - 4;  // column to begin in place at
  for (int64_t j = 0, c = a.first; j < a.columns; ++j, c += a.every, dst += 4 * kBlock) {
    for (; c >= 0 && c <= last && j < a.columns; ++j, c += a.every, dst += 4 * kBlock) {
      TransposeQuads(row + c * kBlock, dst);
    }
    if (j == a.columns) return;
    const uint8_t* from[4];
    for (int i = 0; i < 4; ++i) {
      const int64_t column = c + i * a.dw;
      const bool inside = row != nullptr && column >= 0 && column < a.iw;
      from[i] = inside ? row + column * kBlock : zeros;
    }
    InterleaveQuads(from, dst);
  }
}

#else

constexpr bool kQuads = false;
inline IVec LoadWeights(const float* p) { return LoadWords(reinterpret_cast<const int16_t*>(p)); }
inline IVec LoadSource(const float* p) { return LoadWeights(p); }
inline IVec Dot(IVec acc, IVec x, IVec weights) { return DotWords(acc, x, weights); }

void DwordRow(const DwordRowArgs& a) {
  alignas(16) uint8_t zeros[kBlock];
  for (uint8_t& zero : zeros) zero = a.zero;
  int16_t* dst = reinterpret_cast<int16_t*>(a.dst);
  const int64_t left = -a.first < a.columns ? -a.first : a.columns;
  const int64_t end = left + a.iw < a.columns ? left + a.iw : a.columns;
  const bool has[] = {a.rows[0] != nullptr, a.rows[1] != nullptr};
  const uint8_t* from[] = {has[0] ? a.rows[0] : zeros, has[1] ? a.rows[1] : zeros};
  const int64_t steps[] = {has[0] ? kBlock : 0, has[1] ? kBlock : 0};
  for (int64_t j = 0; j < a.columns; ++j, dst += 2 * kBlock) {
    if (j < left || j >= end) {
      WidenPairs(zeros, zeros, dst);
    } else {
      WidenPairs(from[0] + (j - left) * steps[0], from[1] + (j - left) * steps[1], dst);
    }
  }
}

#endif

// What becomes of sums: bytes at once, or they wait for what finishes all rows.
struct Finishing {
  explicit Finishing(const TileArgs& tile)
      : small(tile, tile.epilogue),
        dst(reinterpret_cast<char*>(tile.dst)),
        // Pixels that two tiles compute must not be added to twice.
        at_once(kVecsPerBlock == 1 && small.applies() && tile.epilogue.acc_in == nullptr) {}
  const SmallBytes<int32_t, 1> small;
  char* const dst;
  const bool at_once;
};

// Pixels from p0 on of row h. Windows of kTaps columns, neighbours, kStep apart; or any, where
// these are 0.
template <int kPx, int kTaps, int kStep>
void Tile(const ByteRowsArgs& a, const Finishing& to, int64_t h, int64_t p0) {
  const int64_t step = (kStep > 0 ? kStep : a.step) * kBlock;
  for (int v = 0; v < kVecsPerBlock; ++v) {
    IVec acc[kPx][1];
    BD_UNROLL
    for (int p = 0; p < kPx; ++p) acc[p][0] = LoadInt(a.start + v * kLanes);
    for (int64_t i = 0; i < a.count; ++i) {
      const float* const src = a.rows[h * a.count + i] + p0 * step + v * kLanes;
      const float* const w = a.weights + i * a.taps * kBlock + v * kLanes;
      if constexpr (kTaps > 0) {
        IVec weights[kTaps];
        BD_UNROLL
        for (int t = 0; t < kTaps; ++t) weights[t] = LoadWeights(w + t * kBlock);
        BD_UNROLL
        for (int c = 0; c < (kPx - 1) * kStep + kTaps; ++c) {
          const IVec x = LoadSource(src + c * kBlock);
          BD_UNROLL
          for (int t = kTaps - 1; t >= 0; --t) {  // ever younger pixels
            const int from = c - t;
            if (from < 0 || from % kStep != 0 || from / kStep >= kPx) continue;
            acc[from / kStep][0] = Dot(acc[from / kStep][0], x, weights[t]);
          }
        }
      } else {
        for (int64_t t = 0; t < a.taps; ++t) {
          const auto weights = LoadWeights(w + t * kBlock);
          const float* const first = src + t * a.tap_step * kBlock;
          BD_UNROLL
          for (int p = 0; p < kPx; ++p) {
            acc[p][0] = Dot(acc[p][0], LoadSource(first + p * step), weights);
          }
        }
      }
    }
    const int64_t at = h * a.ow + p0;
    if constexpr (kVecsPerBlock == 1) {
      if (to.at_once) {
        to.small.Finish(acc, at, to.dst);
        continue;
      }
    }
    int32_t* const sums = a.sums + at * kBlock + v * kLanes;
    BD_UNROLL
    for (int p = 0; p < kPx; ++p) StoreInt(sums + p * kBlock, acc[p][0]);
  }
}

// The last tile may compute again what the one before it did.
template <int kPx, int kTaps, int kStep>
void Tiles(const ByteRowsArgs& a, const Finishing& to) {
  for (int64_t h = 0; h < a.oh; ++h) {
    for (int64_t p = 0; p + kPx <= a.ow; p += kPx) Tile<kPx, kTaps, kStep>(a, to, h, p);
    if (a.ow % kPx != 0) Tile<kPx, kTaps, kStep>(a, to, h, a.ow - kPx);
  }
}

template <int kTaps, int kStep>
void RowsOf(const ByteRowsArgs& a, const Finishing& to) {
  if (a.ow >= kPixels) return Tiles<kPixels, kTaps, kStep>(a, to);
  if (a.ow >= 7) return Tiles<7, kTaps, kStep>(a, to);
  if (a.ow >= 3) return Tiles<3, kTaps, kStep>(a, to);
  Tiles<1, kTaps, kStep>(a, to);
}

void AllRows(const ByteRowsArgs& a, const Finishing& to) {
#if defined(BD_AVX512_VNNI)
  if (a.step == 1) return RowsOf<0, 1>(a, to);
#else
  if (a.tap_step == 1 && a.taps == 3 && a.step == 1) return RowsOf<3, 1>(a, to);
  if (a.tap_step == 1 && a.taps == 3 && a.step == 2) return RowsOf<3, 2>(a, to);
  if (a.tap_step == 1 && a.taps == 5 && a.step == 1) return RowsOf<5, 1>(a, to);
  if (a.tap_step == 1 && a.taps == 5 && a.step == 2) return RowsOf<5, 2>(a, to);
#endif
  RowsOf<0, 0>(a, to);
}

void Rows(const ByteRowsArgs& a) {
  const Finishing to(*a.tile);
  AllRows(a, to);
  if (to.at_once) return;
  float* const words = reinterpret_cast<float*>(a.sums);
  FinishNarrow<int32_t>(*a.tile, a.tile->epilogue, {words, a.oh * a.ow, 1}, a.tile->dst);
}

constexpr DepthwiseBytesKernels kTable = {kQuads, DwordRow, Rows};

}  // namespace

const DepthwiseBytesKernels& GetDepthwiseBytesKernels() { return kTable; }

}  // namespace bd::BD_ISA
