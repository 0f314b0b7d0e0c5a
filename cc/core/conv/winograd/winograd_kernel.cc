// Winograd transforms on blocks of 16 channels. Compiled once per ISA; the
// algebra is in winograd_kernel.h.
#include "cc/core/conv/winograd/winograd_kernel.h"

#include "cc/core/conv/winograd/winograd_tiles_inl.h"
#include "cc/core/gemm/tiles/epilogue_inl.h"
#include "cc/simd/convert/convert.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

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

// A row of kWinogradTransforms in float32.
template <int kRow>
struct Floats {
  static constexpr WinogradTransform kT = kWinogradTransforms[kRow];
  using Number = Vec;
  using Sum = Vec;
  using Element = float;
  static constexpr int kStep = kLanes;

  template <typename Src>
  static Vec Load(const Src* p) {
    return LoadAs(p);
  }
  template <typename Plane>
  static void Store(Plane* p, Vec x) {
    StoreAs(p, x);
  }
  // t = B^T d. With E_j = prod_{i != j} (x^2 - p_i^2), the rows of +-p_j are
  // (x +- p_j) E_j, times x where 0 is a point: its even and its odd part.
  template <int kAlpha>
  static BD_INLINE void SourceAxis(const Vec (&d)[kAlpha], Vec (&t)[kAlpha]) {
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
  static Vec LoadSum(const float* p) { return bd::BD_ISA::Load(p); }
  static Vec AddSums(Vec x, Vec y) { return Add(x, y); }
  static Vec Start(const WinogradDstArgs& a) {
    return a.epilogue.bias == nullptr ? Zero() : LoadSum(a.epilogue.bias);
  }
  // y = A^T m: even powers of +-p_j take the sum of its pair, odd ones the difference.
  template <int kAlpha, int kM>
  static BD_INLINE void DstAxis(const Vec (&m)[kAlpha], Vec (&y)[kM]) {
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
  static Vec Result(Vec y, int, int) { return y; }
};

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
[[gnu::noinline]] void SplitPatch(const WinogradSourceArgs& a, const Bfloat16* src, int64_t row,
                                  int64_t t) {
  const int64_t plane_stride = 2 * a.plane_stride, phase_stride = 2 * a.phase_stride;
  const int64_t two_rows = 2 * row, two = 2 * kBlock;
  Bfloat16* const dst = reinterpret_cast<Bfloat16*>(a.dst) + t * kBlock;
  SourcePhase<2, 1>(src + kBlock, two_rows, two, dst, plane_stride);
  SourcePhase<2, 2>(src, two_rows, two, dst + phase_stride, plane_stride);
  SourcePhase<1, 2>(src + row, two_rows, two, dst + 2 * phase_stride, plane_stride);
  SourcePhase<1, 1>(src + row + kBlock, two_rows, two, dst + 3 * phase_stride, plane_stride);
}

void SourceOfSplitPhases(const WinogradSourceArgs& a) {
  ForPatches<5, 5, 4, Bfloat16>(
      a, [&](const Bfloat16* src, int64_t row, int64_t t) { SplitPatch(a, src, row, t); });
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
      SourcePatch<Floats<kRow>>(strip + p * kT.mw * kBlock, kPitch, a.dst + (t + p) * kBlock,
                                a.plane_stride);
    }
  }
}

// The largest of a kPool x kPool window; NaN stays, as in max pooling by itself.
template <int kPool, int kMw>
BD_INLINE Vec Pooled(const Vec (&rows)[kPool][kMw], int j) {
  if constexpr (kPool == 1) {
    return rows[0][j];
  } else {
    static_assert(kPool == 2);
    return MaxOrNan(MaxOrNan(rows[0][2 * j], rows[1][2 * j]),
                    MaxOrNan(rows[0][2 * j + 1], rows[1][2 * j + 1]));
  }
}

// kPx pixels of an output row, the first of them `pixel`, from `row`.
template <int kPx>
BD_INLINE void StoreRow(const WinogradDstArgs& a, const float* row, int64_t pixel) {
  TileEpilogue e = a.epilogue;
  e.Advance(pixel);
  Accumulators<1, kPx> out;
  out.Start(e);
  BD_UNROLL
  for (int p = 0; p < kPx; ++p) {
    BD_UNROLL
    for (int v = 0; v < kVecsPerBlock; ++v) {
      out.acc[p][v] = Add(out.acc[p][v], Load(row + p * kBlock + v * kLanes));
    }
  }
  out.FinishBlocked(e, a.dst + pixel * kBlock);
}

// kPool x kPool pixels of a tile become their maximum. x -> clamp(x + bias) never
// decreases, rounding included, so maxima come first and the epilogue has fewer pixels.
template <int kRow, int kPool>
void DstByMemory(const WinogradDstArgs& a) {
  using T = Floats<kRow>;
  constexpr int kW = T::kT.mw / kPool;
  const bool by_rows = a.epilogue.row_major || !a.epilogue.tensors.floats();
  DstByRows<T, kPool>(
      a, by_rows ? kTogether : 1,
      [&](const float* src, int, float* to) {
        DstPatch<T, kPool>(src, a.plane_stride, [&](int i, const auto& y) {
          BD_UNROLL
          for (int j = 0; j < kW; ++j) {
            Store(to + (i * kTogether * kW + j) * kBlock, Pooled(y, j));
          }
        });
      },
      [&](float* row, int64_t px, int64_t pixel) {
        if (by_rows) {
          FinishRow(a, row, px, pixel);
        } else if (px == kW) {
          StoreRow<kW>(a, row, pixel);
        } else {
          for (int64_t p = 0; p < px; ++p) StoreRow<1>(a, row + p * kBlock, pixel + p);
        }
      });
}

template <int kRow>
void Dst(const WinogradDstArgs& a) {
  if (!a.epilogue.tensors.floats() && StoreInRegisters<Floats<kRow>>(a)) return;
  DstByMemory<kRow, 1>(a);
}

template <int kRow>
constexpr void Fill(WinogradKernels* table) {
  if constexpr (kRow < kNumWinogradTransforms) {
    constexpr bool split = kWinogradTransforms[kRow].split_phases();
#if defined(BD_AVX512_BF16)
    if constexpr (split) {
      table->source_rounded[kRow] = SourceOfSplitPhases;
    } else if constexpr (kWinogradTransforms[kRow].rounds_planes()) {
      table->source_rounded[kRow] = Source<Floats<kRow>, Bfloat16, Bfloat16>;
    }
#endif
    if constexpr (kWinogradTransforms[kRow].stride == 1) {
      table->source[kRow] = Source<Floats<kRow>, float, float>;
      table->source_bf16[kRow] = Source<Floats<kRow>, Bfloat16, float>;
    } else if constexpr (!split) {
      table->source[kRow] = SourceOfPhases<kRow, float>;
      table->source_bf16[kRow] = SourceOfPhases<kRow, Bfloat16>;
    }
    table->dst[kRow] = Dst<kRow>;
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

}  // namespace

constexpr WinogradKernels kWinogradKernels = MakeTable();

}  // namespace bd::BD_ISA
