// Depthwise rows of bytes. Compiled once per ISA; the contract is depthwise_kernel.h.
//
// A row splits into tiles of pixels, of which one vector after the other is made. Of windows known
// at compile time a tile loads each source vector once for all products with it.
#include "cc/core/conv/depthwise/depthwise_kernel.h"
#include "cc/core/gemm/tiles/low_precision_registers_inl.h"
#include "cc/simd/convert/int8.h"

namespace bd::BD_ISA {
namespace {

#if defined(BD_AVX512)
constexpr int kPixels = 14;
#else
constexpr int kPixels = 7;  // of 16 registers, beside 5 weights, a source vector and a product
#endif

#if defined(BD_VNNI)

constexpr bool kQuads = true;
using Weights = SignedQuads;
inline Weights LoadWeights(const float* p) { return LoadQuads(reinterpret_cast<const int8_t*>(p)); }
inline IVec Dot(IVec acc, UnsignedQuads x, Weights weights) { return DotQuads(acc, x, weights); }

struct Dwords {
  static UnsignedQuads Load(const float* row, int64_t column) {
    return LoadQuads(reinterpret_cast<const uint8_t*>(row + column * kBlock));
  }
};
struct Bytes {
  static UnsignedQuads Load(const float* row, int64_t column) {
    return TransposedQuads(reinterpret_cast<const uint8_t*>(row) + column * kBlock);
  }
};

void DwordRow(const DwordRowArgs& a) {
  alignas(16) uint8_t zeros[kBlock];
  for (uint8_t& zero : zeros) zero = a.zero;
  uint8_t* dst = reinterpret_cast<uint8_t*>(a.dst);
  for (int64_t c = a.first; c < a.first + a.columns; ++c, dst += 4 * kBlock) {
    const uint8_t* from[4];
    for (int i = 0; i < 4; ++i) {
      const int64_t column = c + i * a.dw;
      const bool inside = a.rows[0] != nullptr && column >= 0 && column < a.iw;
      from[i] = inside ? a.rows[0] + column * kBlock : zeros;
    }
    InterleaveQuads(from, dst);
  }
}

#else

constexpr bool kQuads = false;
using Weights = IVec;
inline Weights LoadWeights(const float* p) {
  return LoadWords(reinterpret_cast<const int16_t*>(p));
}
inline IVec Dot(IVec acc, IVec x, Weights weights) { return DotWords(acc, x, weights); }

struct Dwords {
  static IVec Load(const float* row, int64_t column) { return LoadWeights(row + column * kBlock); }
};

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
  Finishing(const ByteRowsArgs& a)
      : in_registers(a.epilogue),
        dst(static_cast<char*>(a.dst)),
        sums(a.sums),
        // Pixels that two tiles compute must not be added to twice.
        at_once(kVecsPerBlock == 1 && in_registers.applies() && a.epilogue.acc_in == nullptr) {}

  // Vector v of pixels from `at` on.
  template <int kPx>
  void Finish(const IVec (&acc)[kPx][1], int64_t at, int v) const {
    if constexpr (kVecsPerBlock == 1) {
      if (at_once) return in_registers.Finish(acc, at, dst);
    }
    BD_UNROLL
    for (int p = 0; p < kPx; ++p) StoreInt(sums + (at + p) * kBlock + v * kLanes, acc[p][0]);
  }

  const InRegisters<int32_t, 1> in_registers;
  char* const dst;
  int32_t* const sums;
  const bool at_once;
};

// Pixels from p0 on of row h. Windows of kTaps columns, neighbours, kStep apart; or any, where
// these are 0.
template <typename Source, int kPx, int kTaps, int kStep>
void Tile(const ByteRowsArgs& a, const Finishing& to, int64_t h, int64_t p0) {
  const int64_t step = kStep > 0 ? kStep : a.step;
  for (int v = 0; v < kVecsPerBlock; ++v) {
    IVec acc[kPx][1];
    BD_UNROLL
    for (int p = 0; p < kPx; ++p) acc[p][0] = LoadInt(a.start + v * kLanes);
    for (int64_t i = 0; i < a.count; ++i) {
      const float* const src = a.rows[h * a.row_step + i * a.row_distance] + v * kLanes;
      const float* const w = a.weights + i * a.taps * kBlock + v * kLanes;
      if constexpr (kTaps > 0) {
        Weights weights[kTaps];
        BD_UNROLL
        for (int t = 0; t < kTaps; ++t) weights[t] = LoadWeights(w + t * kBlock);
        BD_UNROLL
        for (int c = 0; c < (kPx - 1) * kStep + kTaps; ++c) {
          const auto x = Source::Load(src, p0 * step + c);
          BD_UNROLL
          for (int t = kTaps - 1; t >= 0; --t) {  // ever younger pixels
            const int from = c - t;
            if (from < 0 || from % kStep != 0 || from / kStep >= kPx) continue;
            acc[from / kStep][0] = Dot(acc[from / kStep][0], x, weights[t]);
          }
        }
      } else {
        for (int64_t t = 0; t < a.taps; ++t) {
          const Weights weights = LoadWeights(w + t * kBlock);
          BD_UNROLL
          for (int p = 0; p < kPx; ++p) {
            const auto x = Source::Load(src, (p0 + p) * step + t * a.tap_step);
            acc[p][0] = Dot(acc[p][0], x, weights);
          }
        }
      }
    }
    to.Finish(acc, h * a.ow + p0, v);
  }
}

// The last tile may compute again what the one before it did.
template <typename Source, int kPx, int kTaps, int kStep>
void Tiles(const ByteRowsArgs& a, const Finishing& to) {
  for (int64_t h = 0; h < a.oh; ++h) {
    for (int64_t p = 0; p + kPx <= a.ow; p += kPx) Tile<Source, kPx, kTaps, kStep>(a, to, h, p);
    if (a.ow % kPx != 0) Tile<Source, kPx, kTaps, kStep>(a, to, h, a.ow - kPx);
  }
}

template <typename Source, int kTaps, int kStep>
void RowsOf(const ByteRowsArgs& a, const Finishing& to) {
  if (a.ow >= kPixels) return Tiles<Source, kPixels, kTaps, kStep>(a, to);
  if (a.ow >= 7) return Tiles<Source, 7, kTaps, kStep>(a, to);
  if (a.ow >= 3) return Tiles<Source, 3, kTaps, kStep>(a, to);
  Tiles<Source, 1, kTaps, kStep>(a, to);
}

#if defined(BD_VNNI)

// kHigh rows from h on, whose windows of kRows times 4 kTaps columns are kStep apart: each quad is
// made once for all products with it.
template <int kPx, int kHigh, int kRows, int kTaps, int kStep>
void Window(const ByteRowsArgs& a, const Finishing& to, int64_t h, int64_t p0) {
  Weights weights[kRows][kTaps];
  BD_UNROLL
  for (int i = 0; i < kRows * kTaps; ++i) {
    weights[i / kTaps][i % kTaps] = LoadWeights(a.weights + i * kBlock);
  }
  IVec acc[kHigh][kPx][1];
  BD_UNROLL
  for (int p = 0; p < kHigh * kPx; ++p) acc[p / kPx][p % kPx][0] = LoadInt(a.start);
  BD_UNROLL
  for (int r = 0; r < (kHigh - 1) * kStep + kRows; ++r) {
    const float* const src = a.rows[h * kStep + r];
    constexpr int kTapPixels = 4 / kStep;  // that taps are apart
    BD_UNROLL
    for (int p = 0; p < kPx + (kTaps - 1) * kTapPixels; ++p) {
      const UnsignedQuads x = Bytes::Load(src, (p0 + p) * kStep);
      BD_UNROLL
      for (int y = 0; y < kHigh; ++y) {
        BD_UNROLL
        for (int t = 0; t < kTaps; ++t) {
          const int i = r - y * kStep, q = p - t * kTapPixels;
          if (i < 0 || i >= kRows || q < 0 || q >= kPx) continue;
          acc[y][q][0] = Dot(acc[y][q][0], x, weights[i][t]);
        }
      }
    }
  }
  BD_UNROLL
  for (int y = 0; y < kHigh; ++y) to.Finish(acc[y], (h + y) * a.ow + p0, 0);
}

// The last tile may compute again what the one before it did.
template <int kPx, int kHigh, int kRows, int kTaps, int kStep>
void Windows(const ByteRowsArgs& a, const Finishing& to, int64_t h) {
  int64_t p = 0;
  for (; p + kPx <= a.ow; p += kPx) Window<kPx, kHigh, kRows, kTaps, kStep>(a, to, h, p);
  if (p < a.ow) Window<kPx, kHigh, kRows, kTaps, kStep>(a, to, h, a.ow - kPx);
}

template <int kPx, int kRows, int kTaps, int kStep>
void WindowRows(const ByteRowsArgs& a, const Finishing& to) {
  int64_t h = 0;
  for (; h + 2 <= a.oh; h += 2) Windows<kPx, 2, kRows, kTaps, kStep>(a, to, h);
  if (h < a.oh) Windows<kPx, 1, kRows, kTaps, kStep>(a, to, h);
}

template <int kRows, int kTaps, int kStep>
void AllWindows(const ByteRowsArgs& a, const Finishing& to) {
  if (a.ow >= kPixels) return WindowRows<kPixels, kRows, kTaps, kStep>(a, to);
  WindowRows<kPixels / 2, kRows, kTaps, kStep>(a, to);
}

void AllRows(const ByteRowsArgs& a, const Finishing& to) {
  if (!a.bytes) return RowsOf<Dwords, 0, 0>(a, to);
  if (a.ow >= kPixels / 2 && a.row_step == a.step && a.row_distance == 1) {
    if (a.count == 3 && a.taps == 1 && a.step == 1) return AllWindows<3, 1, 1>(a, to);
    if (a.count == 3 && a.taps == 1 && a.step == 2) return AllWindows<3, 1, 2>(a, to);
    if (a.count == 5 && a.taps == 2 && a.step == 1) return AllWindows<5, 2, 1>(a, to);
    if (a.count == 5 && a.taps == 2 && a.step == 2) return AllWindows<5, 2, 2>(a, to);
  }
  RowsOf<Bytes, 0, 0>(a, to);
}

#else

void AllRows(const ByteRowsArgs& a, const Finishing& to) {
  if (a.tap_step == 1 && a.taps == 3 && a.step == 1) return RowsOf<Dwords, 3, 1>(a, to);
  if (a.tap_step == 1 && a.taps == 3 && a.step == 2) return RowsOf<Dwords, 3, 2>(a, to);
  if (a.tap_step == 1 && a.taps == 5 && a.step == 1) return RowsOf<Dwords, 5, 1>(a, to);
  if (a.tap_step == 1 && a.taps == 5 && a.step == 2) return RowsOf<Dwords, 5, 2>(a, to);
  RowsOf<Dwords, 0, 0>(a, to);
}

#endif

void Rows(const ByteRowsArgs& a) {
  const Finishing to(a);
  AllRows(a, to);
  if (to.at_once) return;
  FinishByRows<int32_t>(a.epilogue, {a.sums, a.oh * a.ow, 1}, a.dst);
}

}  // namespace

constexpr DepthwiseBytesKernels kDepthwiseBytesKernels = {kQuads, DwordRow, Rows};

}  // namespace bd::BD_ISA
