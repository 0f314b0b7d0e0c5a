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

// Windows of kTaps columns, neighbours, kStep apart; or any, where these are 0.
template <int kPx, int kTaps, int kStep>
void Tile(const ByteRowArgs& a, int64_t p0) {
  const int64_t step = (kStep > 0 ? kStep : a.step) * kBlock;
  for (int v = 0; v < kVecsPerBlock; ++v) {
    IVec acc[kPx];
    BD_UNROLL
    for (int p = 0; p < kPx; ++p) acc[p] = LoadInt(a.start + v * kLanes);
    for (int64_t i = 0; i < a.count; ++i) {
      const float* const src = a.rows[i] + p0 * step + v * kLanes;
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
            acc[from / kStep] = Dot(acc[from / kStep], x, weights[t]);
          }
        }
      } else {
        for (int64_t t = 0; t < a.taps; ++t) {
          const auto weights = LoadWeights(w + t * kBlock);
          const float* const first = src + t * a.tap_step * kBlock;
          BD_UNROLL
          for (int p = 0; p < kPx; ++p) acc[p] = Dot(acc[p], LoadSource(first + p * step), weights);
        }
      }
    }
    int32_t* const sums = a.sums + p0 * kBlock + v * kLanes;
    BD_UNROLL
    for (int p = 0; p < kPx; ++p) StoreInt(sums + p * kBlock, acc[p]);
  }
}

// The last tile may compute again what the one before it did.
template <int kPx, int kTaps, int kStep>
void Tiles(const ByteRowArgs& a) {
  for (int64_t p = 0; p + kPx <= a.ow; p += kPx) Tile<kPx, kTaps, kStep>(a, p);
  if (a.ow % kPx != 0) Tile<kPx, kTaps, kStep>(a, a.ow - kPx);
}

template <int kTaps, int kStep>
void RowOf(const ByteRowArgs& a) {
  if (a.ow >= kPixels) return Tiles<kPixels, kTaps, kStep>(a);
  if (a.ow >= 7) return Tiles<7, kTaps, kStep>(a);
  if (a.ow >= 3) return Tiles<3, kTaps, kStep>(a);
  Tiles<1, kTaps, kStep>(a);
}

void Row(const ByteRowArgs& a) {
#if defined(BD_AVX512_VNNI)
  if (a.step == 1) return RowOf<0, 1>(a);
#else
  if (a.tap_step == 1 && a.taps == 3 && a.step == 1) return RowOf<3, 1>(a);
  if (a.tap_step == 1 && a.taps == 3 && a.step == 2) return RowOf<3, 2>(a);
  if (a.tap_step == 1 && a.taps == 5 && a.step == 1) return RowOf<5, 1>(a);
  if (a.tap_step == 1 && a.taps == 5 && a.step == 2) return RowOf<5, 2>(a);
#endif
  RowOf<0, 0>(a);
}

void Finish(const TileArgs& tile, int32_t* sums, int64_t pixels) {
  float* const words = reinterpret_cast<float*>(sums);
  FinishNarrow<int32_t>(tile, tile.epilogue, {words, pixels, 1}, tile.dst);
}

constexpr DepthwiseBytesKernels kTable = {kQuads, DwordRow, Row, Finish};

}  // namespace

const DepthwiseBytesKernels& GetDepthwiseBytesKernels() { return kTable; }

}  // namespace bd::BD_ISA
