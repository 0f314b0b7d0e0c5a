// Winograd transforms on blocks of 16 channels. Compiled once per ISA; the
// algebra is in winograd_kernel.h.
#include "cc/core/conv/winograd/winograd_kernel.h"

#include "cc/core/gemm/tiles/epilogue_inl.h"
#include "cc/core/gemm/tiles/narrow_epilogue_inl.h"
#include "cc/simd/convert/convert.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

#define BD_INLINE inline __attribute__((always_inline))

// The polynomials in x^2 that the points +-p_j make, as coefficients of 1, x^2, ...
template <int kAlpha>
struct Algebra {
  static constexpr WinogradPoints kPoints = WinogradPointsOf(kAlpha);
  static constexpr int kPairs = kPoints.pairs;
  static constexpr int kZero = kPoints.zero;

  struct Polynomials {
    float all[kPairs + 1] = {};          // prod_j (x^2 - p_j^2)
    float without[kPairs][kPairs] = {};  // the same, factor i left out
    float power[kPairs][kAlpha] = {};    // p_i^k
  };

  static constexpr void Product(int except, float* out) {
    double c[kPairs + 1] = {1.};
    int degree = 0;
    for (int j = 0; j < kPairs; ++j) {
      if (j == except) continue;
      const double square = kPoints.p[j] * kPoints.p[j];
      for (int k = ++degree; k >= 0; --k) c[k] = (k > 0 ? c[k - 1] : 0.) - square * c[k];
    }
    for (int k = 0; k <= degree; ++k) out[k] = static_cast<float>(c[k]);
  }

  static constexpr Polynomials Make() {
    Polynomials result;
    Product(-1, result.all);
    for (int j = 0; j < kPairs; ++j) {
      Product(j, result.without[j]);
      double power = 1.;
      for (int k = 0; k < kAlpha; ++k, power *= kPoints.p[j]) {
        result.power[j][k] = static_cast<float>(power);
      }
    }
    return result;
  }

  static constexpr Polynomials kPolynomials = Make();
};

// c * x + acc, for a c that the compiler knows.
BD_INLINE Vec AddScaled(float c, Vec x, Vec acc) {
  return c == 1.f ? Add(acc, x) : c == -1.f ? Sub(acc, x) : Fma(Set1(c), x, acc);
}

// sum_k c[k] d[2k], whose last coefficient is one.
template <int kTerms>
BD_INLINE Vec EveryOther(const float (&c)[kTerms], const Vec* d) {
  Vec sum = d[2 * (kTerms - 1)];
  BD_UNROLL
  for (int k = kTerms - 2; k >= 0; --k) sum = AddScaled(c[k], d[2 * k], sum);
  return sum;
}

// t = B^T d. With E_j = prod_{i != j} (x^2 - p_i^2), the rows of +-p_j are
// (x +- p_j) E_j, times x where 0 is a point: an even and an odd part apart.
template <int kAlpha>
BD_INLINE void SourceAxis(const Vec (&d)[kAlpha], Vec (&t)[kAlpha]) {
  if constexpr (kAlpha == 1) {
    t[0] = d[0];
  } else {
    using A = Algebra<kAlpha>;
    constexpr int kZero = A::kZero;
    if constexpr (kZero > 0) t[0] = EveryOther(A::kPolynomials.all, d);
    BD_UNROLL
    for (int j = 0; j < A::kPairs; ++j) {
      const Vec odd = EveryOther(A::kPolynomials.without[j], d + kZero);
      const Vec even = EveryOther(A::kPolynomials.without[j], d + kZero + 1);
      t[kZero + 2 * j] = AddScaled(A::kPolynomials.power[j][1], odd, even);
      t[kZero + 2 * j + 1] = AddScaled(-A::kPolynomials.power[j][1], odd, even);
    }
    t[kAlpha - 1] = EveryOther(A::kPolynomials.all, d + kZero);
  }
}

// y = A^T m: even powers of +-p_j take the sum of its pair, odd ones the difference.
template <int kAlpha, int kM>
BD_INLINE void DstAxis(const Vec (&m)[kAlpha], Vec (&y)[kM]) {
  if constexpr (kAlpha == 1) {
    y[0] = m[0];
  } else if constexpr (kAlpha == 3) {  // split_phases
    y[0] = Add(m[0], m[1]);
    y[1] = Add(m[1], m[2]);
  } else {
    using A = Algebra<kAlpha>;
    constexpr int kZero = A::kZero;
    Vec pair[2][A::kPairs];
    BD_UNROLL
    for (int j = 0; j < A::kPairs; ++j) {
      pair[0][j] = Add(m[kZero + 2 * j], m[kZero + 2 * j + 1]);
      pair[1][j] = Sub(m[kZero + 2 * j], m[kZero + 2 * j + 1]);
    }
    BD_UNROLL
    for (int k = 0; k < kM; ++k) {
      const float first = A::kPolynomials.power[0][k];
      y[k] = k == kM - 1    ? AddScaled(first, pair[k % 2][0], m[kAlpha - 1])
             : first == 1.f ? pair[k % 2][0]
                            : Mul(Set1(first), pair[k % 2][0]);
      BD_UNROLL
      for (int j = 1; j < A::kPairs; ++j) {
        y[k] = AddScaled(A::kPolynomials.power[j][k], pair[k % 2][j], y[k]);
      }
    }
    if constexpr (kZero > 0) y[0] = Add(m[0], y[0]);
  }
}

// One patch whose pixels are row_stride and 16 elements apart.
template <int kAlphaH, int kAlphaW, typename Src, typename Plane>
BD_INLINE void SourcePatch(const Src* src, int64_t row_stride, Plane* dst, int64_t plane_stride) {
  for (int v = 0; v < kVecsPerBlock; ++v) {
    Vec half[kAlphaH][kAlphaW];  // B^T d, rows transformed
    BD_UNROLL
    for (int j = 0; j < kAlphaW; ++j) {
      Vec d[kAlphaH], t[kAlphaH];
      BD_UNROLL
      for (int i = 0; i < kAlphaH; ++i)
        d[i] = LoadAs(src + i * row_stride + j * kBlock + v * kLanes);
      SourceAxis<kAlphaH>(d, t);
      BD_UNROLL
      for (int i = 0; i < kAlphaH; ++i) half[i][j] = t[i];
    }
    BD_UNROLL
    for (int i = 0; i < kAlphaH; ++i) {
      Vec t[kAlphaW];
      SourceAxis<kAlphaW>(half[i], t);
      BD_UNROLL
      for (int j = 0; j < kAlphaW; ++j) {
        StoreAs(dst + (i * kAlphaW + j) * plane_stride + v * kLanes, t[j]);
      }
    }
  }
}

template <int kRow, typename Src, typename Plane>
void Source(const WinogradSourceArgs& a) {
  constexpr WinogradTransform kT = kWinogradTransforms[kRow];
  constexpr int kAlphaH = kT.alpha_h(), kAlphaW = kT.alpha_w();
  const Src* const plane = static_cast<const Src*>(a.src);
  const int64_t plane_stride = a.plane_stride * static_cast<int64_t>(sizeof(float) / sizeof(Plane));
  alignas(64) float patch[kAlphaH * kAlphaW * kBlock];
  for (int64_t t = 0; t < a.tiles; ++t) {
    const int64_t x = a.x + t * kT.mw;
    Plane* dst = reinterpret_cast<Plane*>(a.dst) + t * kBlock;
    if (a.y >= 0 && x >= 0 && a.y + kAlphaH <= a.ih && x + kAlphaW <= a.iw) {
      SourcePatch<kAlphaH, kAlphaW>(plane + (a.y * a.iw + x) * kBlock, a.iw * kBlock, dst,
                                    plane_stride);
      continue;
    }
    for (int64_t i = 0; i < kAlphaH; ++i) {
      for (int64_t j = 0; j < kAlphaW; ++j) {
        const int64_t h = a.y + i, w = x + j;
        const bool inside = h >= 0 && h < a.ih && w >= 0 && w < a.iw;
        float* out = patch + (i * kAlphaW + j) * kBlock;
        for (int v = 0; v < kBlock; v += kLanes) {
          Store(out + v, inside ? LoadAs(plane + (h * a.iw + w) * kBlock + v) : Zero());
        }
      }
    }
    SourcePatch<kAlphaH, kAlphaW>(patch, kAlphaW * kBlock, dst, plane_stride);
  }
}

#if defined(BD_AVX512_BF16)

// One phase of a patch, kTapsH x kTapsW taps of it: pixels are row_stride and `step` apart.
template <int kTapsH, int kTapsW>
BD_INLINE void SourcePhase(const Bfloat16* src, int64_t row_stride, int64_t step, Bfloat16* dst,
                           int64_t plane_stride) {
  constexpr int kRows = kTapsH + 1, kColumns = kTapsW + 1;
  constexpr auto axis = [](auto& d) {
    if constexpr (sizeof(d) / sizeof(Vec) == 3) {
      d[0] = Sub(d[0], d[1]);
      d[2] = Sub(d[2], d[1]);
    }
  };
  for (int v = 0; v < kBlock; v += kLanes) {
    Vec half[kRows][kColumns];
    BD_UNROLL
    for (int j = 0; j < kColumns; ++j) {
      Vec d[kRows];
      BD_UNROLL
      for (int i = 0; i < kRows; ++i) d[i] = LoadAs(src + i * row_stride + j * step + v);
      axis(d);
      BD_UNROLL
      for (int i = 0; i < kRows; ++i) half[i][j] = d[i];
    }
    BD_UNROLL
    for (int i = 0; i < kRows; ++i) {
      axis(half[i]);
      BD_UNROLL
      for (int j = 0; j < kColumns; ++j) {
        const int plane = (kRows == 3 ? i : 2 * i) * 3 + (kColumns == 3 ? j : 2 * j);
        StoreAs(dst + plane * plane_stride + v, half[i][j]);
      }
    }
  }
}

// Of 3x3 taps at stride 2, each phase into its planes.
void SourceOfSplitPhases(const WinogradSourceArgs& a) {
  constexpr int kPatch = 5, kMoves = 4;  // pixels of a patch, and from one to the next
  const Bfloat16* const plane = static_cast<const Bfloat16*>(a.src);
  Bfloat16* dst = reinterpret_cast<Bfloat16*>(a.dst);
  const int64_t plane_stride = 2 * a.plane_stride, phase_stride = 2 * a.phase_stride;
  Bfloat16 patch[kPatch * kPatch * kBlock];
  for (int64_t t = 0; t < a.tiles; ++t, dst += kBlock) {
    const int64_t x = a.x + t * kMoves;
    const Bfloat16* src = patch;
    int64_t row = kPatch * kBlock;
    if (a.y >= 0 && x >= 0 && a.y + kPatch <= a.ih && x + kPatch <= a.iw) {
      src = plane + (a.y * a.iw + x) * kBlock;
      row = a.iw * kBlock;
    } else {
      __builtin_memset(patch, 0, sizeof(patch));
      for (int64_t i = 0; i < kPatch * kPatch; ++i) {
        const int64_t h = a.y + i / kPatch, w = x + i % kPatch;
        if (h < 0 || h >= a.ih || w < 0 || w >= a.iw) continue;
        __builtin_memcpy(patch + i * kBlock, plane + (h * a.iw + w) * kBlock,
                         kBlock * sizeof(Bfloat16));
      }
    }
    const int64_t two_rows = 2 * row, two = 2 * kBlock;
    SourcePhase<2, 1>(src + kBlock, two_rows, two, dst, plane_stride);
    SourcePhase<2, 2>(src, two_rows, two, dst + phase_stride, plane_stride);
    SourcePhase<1, 2>(src + row, two_rows, two, dst + 2 * phase_stride, plane_stride);
    SourcePhase<1, 1>(src + row + kBlock, two_rows, two, dst + 3 * phase_stride, plane_stride);
  }
}

#endif

inline float Widened(float x) { return x; }
inline float Widened(Bfloat16 x) {
  const uint32_t bits = uint32_t{x.bits} << 16;
  float wide;
  __builtin_memcpy(&wide, &bits, sizeof wide);
  return wide;
}

// Source row h from pixel x on: `count` runs of `run` numbers, as floats kBlock apart in dst;
// zeros outside.
template <typename Src>
BD_INLINE void SpreadRow(const WinogradSourceArgs& a, int64_t h, int64_t x, int64_t run,
                         int64_t count, float* dst) {
  const int64_t width = a.iw * a.ic, first = x * a.ic;  // in numbers of the row
  const Src* row = static_cast<const Src*>(a.src) + h * width;
  const bool inside = h >= 0 && h < a.ih;
  for (int64_t j = 0; j < count; ++j, dst += kBlock) {
    const int64_t at = first + j * run;
    if (inside && at >= 0 && at + run <= width) {
      if (run == 6) {  // two pixels of three colours: known to the compiler
        for (int64_t i = 0; i < 6; ++i) dst[i] = Widened(row[at + i]);
      } else {
        for (int64_t i = 0; i < run; ++i) dst[i] = Widened(row[at + i]);
      }
    } else {
      for (int64_t i = 0; i < run; ++i) {
        dst[i] = inside && at + i >= 0 && at + i < width ? Widened(row[at + i]) : 0.f;
      }
    }
  }
}

// Several patches at once share the pixels they have in common, and pixels are read
// long after the stores of their runs, which no load could wait for together.
constexpr int kPatches = 8;

template <int kRow, typename Src>
void SourceOfPhases(const WinogradSourceArgs& a) {
  constexpr WinogradTransform kT = kWinogradTransforms[kRow];
  constexpr int kAlphaH = kT.alpha_h(), kAlphaW = kT.alpha_w();
  constexpr int kPitch = ((kPatches - 1) * kT.mw + kAlphaW) * kBlock;
  alignas(64) float strip[kAlphaH * kPitch] = {};  // lanes beyond the phases stay zero
  const int64_t run = kT.stride * a.ic;
  for (int64_t t = 0; t < a.tiles; t += kPatches) {
    const int64_t patches = a.tiles - t < kPatches ? a.tiles - t : kPatches;
    const int64_t pixels = (patches - 1) * kT.mw + kAlphaW;
    for (int64_t h = 0; h < kAlphaH * kT.stride; ++h) {
      SpreadRow<Src>(a, a.y + h, a.x + t * kT.mw * kT.stride, run, pixels,
                     strip + h / kT.stride * kPitch + h % kT.stride * run);
    }
    for (int64_t p = 0; p < patches; ++p) {
      SourcePatch<kAlphaH, kAlphaW>(strip + p * kT.mw * kBlock, kPitch, a.dst + (t + p) * kBlock,
                                    a.plane_stride);
    }
  }
}

// Of a 2x2 window; NaN stays, as in max pooling by itself.
BD_INLINE Vec MaxOfWindow(Vec top_left, Vec top_right, Vec left, Vec right) {
  return MaxOrNan(MaxOrNan(top_left, left), MaxOrNan(top_right, right));
}

template <int kPool, int kMw>
BD_INLINE Vec Pooled(const Vec (&rows)[kPool][kMw], int j) {
  if constexpr (kPool == 1) {
    return rows[0][j];
  } else {
    static_assert(kPool == 2);
    return MaxOfWindow(rows[0][2 * j], rows[0][2 * j + 1], rows[1][2 * j], rows[1][2 * j + 1]);
  }
}

// kPx pixels of an output row, the first of them `pixel`, from `row`; *own is a copy of the
// epilogue for its place.
template <int kPx, bool kPlain>
BD_INLINE void StoreRow(const WinogradDstArgs& a, const float* row, int64_t pixel,
                        TileEpilogue* own) {
  TileEpilogue& e = *own;
  const int64_t offset = pixel * (kPlain ? e.dst_step : kBlock);
  if (e.acc_in != nullptr) e.acc_in = a.epilogue.acc_in + offset;
  e.dst_offset = a.epilogue.dst_offset + offset;
  Accumulators<1, kPx> out;
  out.Start(e);
  BD_UNROLL
  for (int p = 0; p < kPx; ++p) {
    BD_UNROLL
    for (int v = 0; v < kVecsPerBlock; ++v) {
      out.acc[p][v] = Add(out.acc[p][v], Load(row + p * kBlock + v * kLanes));
    }
  }
  if constexpr (kPlain) {
    if (e.valid_lanes == kBlock || e.program != nullptr || e.acc_in != nullptr) {
      return out.Finish(e, a.dst + offset, 0);  // rows
    }
    // Stores by a mask take longer than a few floats.
    alignas(64) float pixels[kPx * kBlock];
    out.FinishBlocked(e, pixels, 0);
    for (int p = 0; p < kPx; ++p) {
      float* dst = a.dst + offset + p * e.dst_step;
      for (int i = 0; i < e.valid_lanes; ++i) dst[i] = pixels[p * kBlock + i];
    }
  } else {
    out.FinishBlocked(e, a.dst + offset, 0);
  }
}

// The same of `px` pixels to any types.
inline void StoreNarrowRow(const WinogradDstArgs& a, float* row, int64_t px, int64_t pixel,
                           TileEpilogue* own) {
  TileEpilogue& e = *own;
  const int64_t offset = pixel * (e.row_major ? e.dst_step : kBlock);
  if (e.acc_in != nullptr) {
    const char* in = reinterpret_cast<const char*>(a.epilogue.acc_in);
    e.acc_in = reinterpret_cast<const float*>(in + offset * a.narrow->sum_bytes);
  }
  e.dst_offset = a.epilogue.dst_offset + offset;
  for (int64_t i = 0; e.bias != nullptr && i < px * kBlock; i += kLanes) {
    Store(row + i, Add(Load(row + i), Load(e.bias + i % kBlock)));
  }
  TileArgs tile = {};
  tile.narrow = a.narrow;
  char* const dst = reinterpret_cast<char*>(a.dst);
  FinishNarrow<float>(tile, e, {row, px, 1}, dst + offset * a.narrow->dst_bytes);
}

// Calls row(i, y) for each kPool rows of results of one vector of a tile, y being [kPool][kMw].
template <int kRow, int kPool, typename Row>
BD_INLINE void DstPatch(const float* src, int64_t plane_stride, Row&& row) {
  constexpr int kMh = kWinogradTransforms[kRow].mh, kMw = kWinogradTransforms[kRow].mw;
  constexpr int kAlphaH = kWinogradTransforms[kRow].alpha_h();
  constexpr int kAlphaW = kWinogradTransforms[kRow].alpha_w();
  Vec half[kMh][kAlphaW];
  BD_UNROLL
  for (int j = 0; j < kAlphaW; ++j) {
    Vec m[kAlphaH], y[kMh];
    BD_UNROLL
    for (int i = 0; i < kAlphaH; ++i) m[i] = Load(src + (i * kAlphaW + j) * plane_stride);
    DstAxis<kAlphaH, kMh>(m, y);
    BD_UNROLL
    for (int i = 0; i < kMh; ++i) half[i][j] = y[i];
  }
  BD_UNROLL
  for (int i = 0; i < kMh / kPool; ++i) {
    Vec y[kPool][kMw];
    BD_UNROLL
    for (int p = 0; p < kPool; ++p) DstAxis<kAlphaW, kMw>(half[i * kPool + p], y[p]);
    row(i, y);
  }
}

// Narrow tiles that go through the epilogue together, which sets out once for their rows.
constexpr int64_t kTogether = 8;

// kPool x kPool pixels of a tile become their maximum. x -> clamp(x + bias) never
// decreases, rounding included, so maxima come first and the epilogue has fewer pixels.
template <int kRow, int kPool, bool kPlain = false>
void DstByMemory(const WinogradDstArgs& a) {
  constexpr int kH = kWinogradTransforms[kRow].mh / kPool;  // of the tile in dst
  constexpr int kW = kWinogradTransforms[kRow].mw / kPool;
  constexpr int64_t kPitch = kTogether * kW * kBlock;
  alignas(64) float sums[kH * kPitch];
  TileEpilogue epilogue = a.epilogue;
  const int64_t rows = a.h - a.y < kH ? a.h - a.y : kH;
  const int64_t together = a.narrow != nullptr ? kTogether : 1;
  for (int64_t first = 0; first < a.tiles; first += together) {
    const int64_t tiles = a.tiles - first < together ? a.tiles - first : together;
    for (int64_t t = 0; t < tiles; ++t) {
      for (int v = 0; v < kBlock; v += kLanes) {
        float* const to = sums + t * kW * kBlock + v;
        const float* const src = a.src + (first + t) * kBlock + v;
        DstPatch<kRow, kPool>(src, a.plane_stride, [&](int i, const auto& y) {
          BD_UNROLL
          for (int j = 0; j < kW; ++j) Store(to + i * kPitch + j * kBlock, Pooled(y, j));
        });
      }
    }
    const int64_t x = a.x + first * kW;
    const int64_t px = a.w - x < tiles * kW ? a.w - x : tiles * kW;
    for (int64_t i = 0; i < rows; ++i) {
      float* row = sums + i * kPitch;
      const int64_t pixel = (a.y + i) * a.w + x;
      if (a.narrow != nullptr) {
        StoreNarrowRow(a, row, px, pixel, &epilogue);
      } else if (px == kW) {
        StoreRow<kW, kPlain>(a, row, pixel, &epilogue);
      } else {
        for (int64_t p = 0; p < px; ++p) {
          StoreRow<1, kPlain>(a, row + p * kBlock, pixel + p, &epilogue);
        }
      }
    }
  }
}

#if defined(BD_AVX512)

// `rows` rows of kPx pixels of a tile, the first of which is `pixel`.
template <int kRow, int kPx>
[[gnu::noinline]] void FinishPatch(const WinogradDstArgs& a, const InRegisters<float, 1>& finish,
                                   const float* src, int64_t rows, int64_t pixel) {
  if constexpr (kPx <= kWinogradTransforms[kRow].mw) {
    const Vec bias = a.epilogue.bias == nullptr ? Zero() : Load(a.epilogue.bias);
    DstPatch<kRow, 1>(src, a.plane_stride, [&](int i, const auto& y) {
      if (i >= rows) return;
      Vec sums[kPx][1];
      BD_UNROLL
      for (int p = 0; p < kPx; ++p) sums[p][0] = Add(y[0][p], bias);
      finish.Finish(sums, pixel + i * a.w, reinterpret_cast<char*>(a.dst));
    });
  }
}

// To bfloat16, where nothing but a bias and a clamp is behind the sums.
template <int kRow>
void Dst(const WinogradDstArgs& a) {
  if (a.narrow == nullptr) return DstByMemory<kRow, 1>(a);
  TileArgs tile = {};
  tile.narrow = a.narrow;
  const InRegisters<float, 1> finish(tile, a.epilogue);
  if (!finish.applies()) return DstByMemory<kRow, 1>(a);
  constexpr int64_t kMh = kWinogradTransforms[kRow].mh, kMw = kWinogradTransforms[kRow].mw;
  const int64_t rows = a.h - a.y < kMh ? a.h - a.y : kMh;
  for (int64_t t = 0; t < a.tiles; ++t) {
    const int64_t x = a.x + t * kMw, pixel = a.y * a.w + x;
    const float* const src = a.src + t * kBlock;
    switch (a.w - x < kMw ? a.w - x : kMw) {
      case 1:
        FinishPatch<kRow, 1>(a, finish, src, rows, pixel);
        break;
      case 2:
        FinishPatch<kRow, 2>(a, finish, src, rows, pixel);
        break;
      case 3:
        FinishPatch<kRow, 3>(a, finish, src, rows, pixel);
        break;
      default:
        FinishPatch<kRow, 4>(a, finish, src, rows, pixel);
    }
  }
}

#else

// Two vectors a block leave the sums of a tile no registers.
template <int kRow>
void Dst(const WinogradDstArgs& a) {
  DstByMemory<kRow, 1>(a);
}

#endif

template <int kRow>
constexpr void FillRounded(WinogradKernels* table) {
#if defined(BD_AVX512_BF16)
  if constexpr (kWinogradTransforms[kRow].split_phases()) {
    table->source_rounded[kRow] = SourceOfSplitPhases;
  } else if constexpr (kWinogradTransforms[kRow].rounds_planes()) {
    table->source_rounded[kRow] = Source<kRow, Bfloat16, Bfloat16>;
  }
#endif
}

template <int kRow>
constexpr void Fill(WinogradKernels* table) {
  if constexpr (kRow < kNumWinogradTransforms) {
    FillRounded<kRow>(table);
    if constexpr (kWinogradTransforms[kRow].stride == 1) {
      table->source[kRow] = Source<kRow, float, float>;
      table->source_bf16[kRow] = Source<kRow, Bfloat16, float>;
    } else if constexpr (!kWinogradTransforms[kRow].split_phases()) {
      table->source[kRow] = SourceOfPhases<kRow, float>;
      table->source_bf16[kRow] = SourceOfPhases<kRow, Bfloat16>;
    }
    table->dst[kRow] = Dst<kRow>;
    table->dst_plain[kRow] = DstByMemory<kRow, 1, true>;
    if constexpr (kWinogradTransforms[kRow].holds_windows()) {
      table->dst_max[kRow] = DstByMemory<kRow, 2>;
    }
    Fill<kRow + 1>(table);
  }
}

constexpr WinogradKernels MakeTable() {
  WinogradKernels table = {};
  Fill<0>(&table);
  return table;
}

constexpr WinogradKernels kTable = MakeTable();

}  // namespace

const WinogradKernels& GetWinogradKernels() { return kTable; }

}  // namespace bd::BD_ISA
