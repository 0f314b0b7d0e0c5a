// Winograd transforms on blocks of 16 channels. Compiled once per ISA; the
// algebra is in conv_winograd_kernel.h.
#include "cc/core/conv/conv_winograd_kernel.h"

#include "cc/core/conv/conv_epilogue_inl.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

constexpr float kA = static_cast<float>(kWinogradA);
constexpr float kB = static_cast<float>(kWinogradB);
constexpr float kA2 = static_cast<float>(kWinogradA * kWinogradA);
constexpr float kB2 = static_cast<float>(kWinogradB * kWinogradB);
constexpr float kA3 = static_cast<float>(kWinogradA * kWinogradA * kWinogradA);
constexpr float kB3 = static_cast<float>(kWinogradB * kWinogradB * kWinogradB);
constexpr float kA2B2 = static_cast<float>(kWinogradA * kWinogradA + kWinogradB * kWinogradB);

#define BD_INLINE inline __attribute__((always_inline))

template <int kM>
struct Transform;

// Points 0, 1, -1 and infinity.
template <>
struct Transform<2> {
  static BD_INLINE void Source(const Vec (&d)[4], Vec (&t)[4]) {
    t[0] = Sub(d[2], d[0]);
    t[1] = Add(d[1], d[2]);
    t[2] = Sub(d[2], d[1]);
    t[3] = Sub(d[3], d[1]);
  }
  static BD_INLINE void Dst(const Vec (&m)[4], Vec (&y)[2]) {
    y[0] = Add(m[0], Add(m[1], m[2]));
    y[1] = Add(Sub(m[1], m[2]), m[3]);
  }
};

// Points 0, a, -a, b, -b and infinity, with a b = 1. Rows of B^T, even and odd
// part apart: (x^2 - b^2) x (x +- a) and (x^2 - a^2) x (x +- b).
template <>
struct Transform<4> {
  static BD_INLINE void Source(const Vec (&d)[6], Vec (&t)[6]) {
    const Vec s = Set1(-kA2B2), a2 = Set1(-kA2), b2 = Set1(-kB2), a = Set1(kA), b = Set1(kB);
    const Vec minus_a = Set1(-kA), minus_b = Set1(-kB);
    t[0] = Add(d[0], Fma(s, d[2], d[4]));
    const Vec even_a = Fma(b2, d[2], d[4]), odd_a = Fma(b2, d[1], d[3]);
    t[1] = Fma(a, odd_a, even_a);
    t[2] = Fma(minus_a, odd_a, even_a);
    const Vec even_b = Fma(a2, d[2], d[4]), odd_b = Fma(a2, d[1], d[3]);
    t[3] = Fma(b, odd_b, even_b);
    t[4] = Fma(minus_b, odd_b, even_b);
    t[5] = Add(d[1], Fma(s, d[3], d[5]));
  }
  static BD_INLINE void Dst(const Vec (&m)[6], Vec (&y)[4]) {
    const Vec sum_a = Add(m[1], m[2]), dif_a = Sub(m[1], m[2]);
    const Vec sum_b = Add(m[3], m[4]), dif_b = Sub(m[3], m[4]);
    y[0] = Add(m[0], Add(sum_a, sum_b));
    y[1] = Fma(Set1(kB), dif_b, Mul(Set1(kA), dif_a));
    y[2] = Fma(Set1(kB2), sum_b, Mul(Set1(kA2), sum_a));
    y[3] = Fma(Set1(kB3), dif_b, Fma(Set1(kA3), dif_a, m[5]));
  }
};

// One patch whose pixels are row_stride and 16 floats apart.
template <int kM>
BD_INLINE void SourcePatch(const float* src, int64_t row_stride, float* dst, int64_t plane_stride) {
  constexpr int kAlpha = kM + 2;
  for (int v = 0; v < kVecsPerBlock; ++v) {
    Vec half[kAlpha][kAlpha];  // B^T d, rows transformed
    BD_UNROLL
    for (int j = 0; j < kAlpha; ++j) {
      Vec d[kAlpha], t[kAlpha];
      BD_UNROLL
      for (int i = 0; i < kAlpha; ++i) d[i] = Load(src + i * row_stride + j * kBlock + v * kLanes);
      Transform<kM>::Source(d, t);
      BD_UNROLL
      for (int i = 0; i < kAlpha; ++i) half[i][j] = t[i];
    }
    BD_UNROLL
    for (int i = 0; i < kAlpha; ++i) {
      Vec t[kAlpha];
      Transform<kM>::Source(half[i], t);
      BD_UNROLL
      for (int j = 0; j < kAlpha; ++j) {
        Store(dst + (i * kAlpha + j) * plane_stride + v * kLanes, t[j]);
      }
    }
  }
}

template <int kM>
void Source(const WinogradSourceArgs& a) {
  constexpr int64_t kAlpha = kM + 2;
  alignas(64) float patch[kAlpha * kAlpha * kBlock];
  for (int64_t t = 0; t < a.tiles; ++t) {
    const int64_t x = a.x + t * kM;
    float* dst = a.dst + t * kBlock;
    if (a.y >= 0 && x >= 0 && a.y + kAlpha <= a.ih && x + kAlpha <= a.iw) {
      SourcePatch<kM>(a.src + (a.y * a.iw + x) * kBlock, a.iw * kBlock, dst, a.plane_stride);
      continue;
    }
    for (int64_t i = 0; i < kAlpha; ++i) {
      for (int64_t j = 0; j < kAlpha; ++j) {
        const int64_t h = a.y + i, w = x + j;
        const bool inside = h >= 0 && h < a.ih && w >= 0 && w < a.iw;
        float* out = patch + (i * kAlpha + j) * kBlock;
        for (int v = 0; v < kBlock; v += kLanes) {
          Store(out + v, inside ? Load(a.src + (h * a.iw + w) * kBlock + v) : Zero());
        }
      }
    }
    SourcePatch<kM>(patch, kAlpha * kBlock, dst, a.plane_stride);
  }
}

// kPx pixels of an output row, from `tile`, with the epilogue.
template <int kPx>
BD_INLINE void StoreRow(const WinogradDstArgs& a, const float* row, int64_t offset) {
  TileEpilogue e = a.epilogue;
  if (e.acc_in != nullptr) e.acc_in += offset;
  e.dst_offset += offset;
  Accumulators<1, kPx> out;
  out.Start(e, 0);
  BD_UNROLL
  for (int p = 0; p < kPx; ++p) {
    BD_UNROLL
    for (int v = 0; v < kVecsPerBlock; ++v) {
      out.acc[p][v] = Add(out.acc[p][v], Load(row + p * kBlock + v * kLanes));
    }
  }
  out.Finish(e, a.dst + offset, 0);
}

template <int kM>
void Dst(const WinogradDstArgs& a) {
  constexpr int64_t kAlpha = kM + 2;
  alignas(64) float tile[kM * kM * kBlock];
  const int64_t rows = a.oh - a.y < kM ? a.oh - a.y : kM;
  for (int64_t t = 0; t < a.tiles; ++t) {
    const float* src = a.src + t * kBlock;
    for (int v = 0; v < kVecsPerBlock; ++v) {
      Vec half[kM][kAlpha];
      BD_UNROLL
      for (int j = 0; j < kAlpha; ++j) {
        Vec m[kAlpha], y[kM];
        BD_UNROLL
        for (int i = 0; i < kAlpha; ++i) {
          m[i] = Load(src + (i * kAlpha + j) * a.plane_stride + v * kLanes);
        }
        Transform<kM>::Dst(m, y);
        BD_UNROLL
        for (int i = 0; i < kM; ++i) half[i][j] = y[i];
      }
      BD_UNROLL
      for (int i = 0; i < kM; ++i) {
        Vec y[kM];
        Transform<kM>::Dst(half[i], y);
        BD_UNROLL
        for (int j = 0; j < kM; ++j) Store(tile + (i * kM + j) * kBlock + v * kLanes, y[j]);
      }
    }
    const int64_t x = a.x + t * kM;
    const int64_t px = a.ow - x < kM ? a.ow - x : kM;
    for (int64_t i = 0; i < rows; ++i) {
      const float* row = tile + i * kM * kBlock;
      const int64_t offset = ((a.y + i) * a.ow + x) * kBlock;
      if (px == kM) {
        StoreRow<kM>(a, row, offset);
      } else {
        for (int64_t p = 0; p < px; ++p) StoreRow<1>(a, row + p * kBlock, offset + p * kBlock);
      }
    }
  }
}

constexpr WinogradKernels kTable = {{Source<2>, Source<4>}, {Dst<2>, Dst<4>}};

}  // namespace

const WinogradKernels& GetWinogradKernels() { return kTable; }

}  // namespace bd::BD_ISA
