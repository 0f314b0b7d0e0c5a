// Depthwise rows of bytes. Compiled once per ISA; the contract is depthwise_bytes_kernel.h.
//
// A product of words adds up two kernel rows. A row splits into tiles of kPixels pixels, of which
// one vector after the other is made; of windows known at compile time a tile holds a kernel row
// of weights in registers and loads each source vector once.
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

// From one column to the next, and from one vector of a column to the next.
constexpr int64_t kColumn = 2 * kBlock, kVector = 2 * kLanes;

void PairRows(const RowPairArgs& a) {
  alignas(16) uint8_t zeros[kBlock];
  for (uint8_t& zero : zeros) zero = a.zero;
  int16_t* dst = a.dst;
  for (int64_t c = 0; c < a.left; ++c, dst += kColumn) WidenPairs(zeros, zeros, dst);
  const bool has[] = {a.rows[0] != nullptr, a.rows[1] != nullptr};
  const uint8_t* from[] = {has[0] ? a.rows[0] : zeros, has[1] ? a.rows[1] : zeros};
  const int64_t steps[] = {has[0] ? kBlock : 0, has[1] ? kBlock : 0};
  for (int64_t c = 0; c < a.inside; ++c, dst += kColumn) {
    WidenPairs(from[0] + c * steps[0], from[1] + c * steps[1], dst);
  }
  for (int64_t c = a.left + a.inside; c < a.columns; ++c, dst += kColumn) {
    WidenPairs(zeros, zeros, dst);
  }
}

// Windows of kKw columns, dense, kSw apart; or any, where these are 0.
template <int kPx, int kKw, int kSw>
void Tile(const ByteRowArgs& a, int64_t p0) {
  for (int v = 0; v < kVecsPerBlock; ++v) {
    IVec acc[kPx];
    BD_UNROLL
    for (int p = 0; p < kPx; ++p) acc[p] = LoadInt(a.start + v * kLanes);
    for (int64_t i = 0; i < a.count; ++i) {
      const int16_t* const src = a.pairs[i] + p0 * a.sw * kColumn + v * kVector;
      const int16_t* const w = a.weights + i * a.kw * kColumn + v * kVector;
      if constexpr (kKw > 0) {
        IVec weights[kKw];
        BD_UNROLL
        for (int t = 0; t < kKw; ++t) weights[t] = LoadWords(w + t * kColumn);
        BD_UNROLL
        for (int c = 0; c < (kPx - 1) * kSw + kKw; ++c) {
          const IVec x = LoadWords(src + c * kColumn);
          BD_UNROLL
          for (int t = kKw - 1; t >= 0; --t) {  // ever younger pixels
            const int from = c - t;
            if (from < 0 || from % kSw != 0 || from / kSw >= kPx) continue;
            acc[from / kSw] = DotWords(acc[from / kSw], x, weights[t]);
          }
        }
      } else {
        for (int64_t t = 0; t < a.kw; ++t) {
          const IVec weights = LoadWords(w + t * kColumn);
          BD_UNROLL
          for (int p = 0; p < kPx; ++p) {
            const IVec x = LoadWords(src + (p * a.sw + t * a.dw) * kColumn);
            acc[p] = DotWords(acc[p], x, weights);
          }
        }
      }
    }
    int32_t* const sums = a.sums + p0 * kBlock + v * kLanes;
    BD_UNROLL
    for (int p = 0; p < kPx; ++p) StoreInt(sums + p * kBlock, acc[p]);
  }
}

// The last tile may compute again what the one before it did.
template <int kPx, int kKw, int kSw>
void Tiles(const ByteRowArgs& a) {
  for (int64_t p = 0; p + kPx <= a.ow; p += kPx) Tile<kPx, kKw, kSw>(a, p);
  if (a.ow % kPx != 0) Tile<kPx, kKw, kSw>(a, a.ow - kPx);
}

template <int kKw, int kSw>
void RowOf(const ByteRowArgs& a) {
  if (a.ow >= kPixels) return Tiles<kPixels, kKw, kSw>(a);
  if (a.ow >= 3) return Tiles<3, kKw, kSw>(a);
  Tiles<1, kKw, kSw>(a);
}

void Row(const ByteRowArgs& a) {
  if (a.dw == 1 && a.kw == 3 && a.sw == 1) return RowOf<3, 1>(a);
  if (a.dw == 1 && a.kw == 3 && a.sw == 2) return RowOf<3, 2>(a);
  if (a.dw == 1 && a.kw == 5 && a.sw == 1) return RowOf<5, 1>(a);
  if (a.dw == 1 && a.kw == 5 && a.sw == 2) return RowOf<5, 2>(a);
  RowOf<0, 0>(a);
}

void Finish(const TileArgs& tile, int32_t* sums, int64_t pixels) {
  float* const words = reinterpret_cast<float*>(sums);
  FinishNarrow<int32_t>(tile, tile.epilogue, {words, pixels, 1}, tile.dst);
}

constexpr DepthwiseBytesKernels kTable = {PairRows, Row, Finish};

}  // namespace

const DepthwiseBytesKernels& GetDepthwiseBytesKernels() { return kTable; }

}  // namespace bd::BD_ISA
