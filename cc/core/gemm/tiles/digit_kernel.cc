// Tiles of kRows rows and kPanels panels, whose groups follow one another: a group's integers
// become floats once. Compiled once per ISA; the contract is digit_kernel.h.
#include "cc/core/gemm/tiles/digit_kernel.h"

#include "cc/simd/convert/convert.h"
#include "cc/simd/convert/int8.h"
#include "cc/simd/math/math_pair.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {

#if defined(BD_AVX512) && defined(BD_VNNI)

namespace {

static_assert(kLanes == kBlock);

constexpr float kMostInteger = 127.f * (65536.f + 256.f + 1.f);
// Scales and their inverses are normal numbers between.
constexpr float kLeastRow = 0x1p-100f, kMostRow = 0x1p100f;

// The least power of two that is not below x, a normal number.
float PowerFrom(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof(bits));
  bits = (bits + 0x7fffff) & 0xff800000;
  __builtin_memcpy(&x, &bits, sizeof(x));
  return x;
}

// What a data type says of a line: how many quads of numbers each column has. Rows of K take turns
// in quads.
struct Int8Digits {
  static constexpr int kRows = 4, kQuads = 1;
  // As unsigned bytes: those of floats lie row by row, and what 128 adds sums begin without.
  static void Load(const float* line, UnsignedQuads (&quads)[kQuads]) {
    quads[0] = FlipSigns(TransposedQuads(reinterpret_cast<const uint8_t*>(line)));
  }
  static int32_t Start(int32_t sum) { return -128 * sum; }
};
struct Int4Digits {
  static constexpr int kRows = 8, kQuads = 2;
  static void Load(const float* line, UnsignedQuads (&quads)[kQuads]) {
    const IVec both = LoadInt(reinterpret_cast<const int32_t*>(line));
    const auto low_bits = [](IVec x) {
      return AsQuads(Bits(And(FromBits(x), FromBits(SetInt(0x0f0f0f0f)))));
    };
    quads[0] = low_bits(both);
    quads[1] = low_bits(ShiftRight<4>(both));
  }
  static int32_t Start(int32_t) { return 0; }
};

// Numbers that become digits at a time; groups are whole lines, as chunks are.
constexpr int kChunk = 128;

template <typename Digits>
bool RowOf(const DigitRow& row) {
  constexpr int kQuads = Digits::kQuads, kOfQuad = kChunk / kQuads;
  Vec most_lanes = Zero();
  bool finite = true;
  for (int64_t i = 0; i < row.k; i += kLanes) {
    const Vec x = Abs(LoadN(row.src + i, AtMostLanes(row.k - i)));
    finite = finite && All(Less(x, Set1(kMostRow)));  // A NaN is not.
    most_lanes = Max(x, most_lanes);
  }
  const float most = ReduceMax(most_lanes);
  if (!finite || !(most >= kLeastRow)) return false;
  *row.scale = PowerFrom(most / kMostInteger);
  const float factor = 1.f / *row.scale;
  int8_t* to = row.digits;
  for (int64_t first = 0; first < row.k; first += row.group) {
    const int64_t end = first + row.group < row.k ? first + row.group : row.k;
    int32_t sums[kDigits] = {};
    for (int64_t at = first; at < end; at += kChunk) {
      const int64_t count = end - at < kChunk ? end - at : kChunk;
      float numbers[kChunk] = {};
      __builtin_memcpy(numbers, row.src + at, static_cast<size_t>(count) * sizeof(float));
      int8_t planes[kDigits][kQuads][kOfQuad];
      for (int q = 0; q < kQuads; ++q) {
        for (int i = 0; i < kOfQuad; ++i) {
          // 128 more for each digit makes them the bytes of an unsigned number.
          const auto x = static_cast<int32_t>(__builtin_rintf(numbers[i * kQuads + q] * factor));
          const int32_t bytes = (x + 0x808080) ^ 0x808080;
          planes[0][q][i] = static_cast<int8_t>(bytes >> 16);
          planes[1][q][i] = static_cast<int8_t>(bytes >> 8);
          planes[2][q][i] = static_cast<int8_t>(bytes);
        }
      }
      for (int d = 0; d < kDigits; ++d) {
        for (int i = 0; i < kChunk; ++i) sums[d] += (&planes[d][0][0])[i];
      }
      for (int64_t k = 0; k < count; k += Digits::kRows) {
        for (int d = 0; d < kDigits; ++d) {
          for (int q = 0; q < kQuads; ++q, to += 4) {
            __builtin_memcpy(to, planes[d][q] + k / kQuads, 4);
          }
        }
      }
    }
    for (int d = 0; d < kDigits; ++d) row.sums[first / row.group * kDigits + d] = sums[d];
  }
  return true;
}

bool Row(const DigitRow& row) {
  return row.weights == DataType::u8 ? RowOf<Int4Digits>(row) : RowOf<Int8Digits>(row);
}

template <typename Digits, int kRows, int kPanels>
void Tile(const ProductArgs& a, const DigitRows& rows, int64_t row, int panel) {
  constexpr int kQuads = Digits::kQuads;
  const int64_t row_bytes = DigitBytes(a.weights, a.k), groups = (a.k + a.group - 1) / a.group;
  Vec sum[kRows][kPanels];
  BD_UNROLL
  for (int p = 0; p < kPanels; ++p) {
    const Vec bias = Load(a.init + a.column[panel + p]);
    BD_UNROLL
    for (int r = 0; r < kRows; ++r) sum[r][p] = bias;
  }
  const float* line = a.panels + panel * a.panel_stride;
  const int64_t ahead = a.next == nullptr ? 0 : a.next - a.panels;
  const int8_t* digits = rows.digits + row * row_bytes;
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t left = a.k - g * a.group, of_group = left < a.group ? left : a.group;
    const int32_t* sums = rows.sums + (row * groups + g) * kDigits;
    IVec acc[kRows][kPanels][kDigits];
    BD_UNROLL
    for (int r = 0; r < kRows; ++r) {
      BD_UNROLL
      for (int p = 0; p < kPanels; ++p) {
        BD_UNROLL
        for (int d = 0; d < kDigits; ++d) {
          acc[r][p][d] = SetInt(Digits::Start(sums[r * groups * kDigits + d]));
        }
      }
    }
    for (int64_t k = 0; k < of_group; k += Digits::kRows) {
      UnsignedQuads weights[kPanels][kQuads];
      BD_UNROLL
      for (int p = 0; p < kPanels; ++p) {
        Digits::Load(line + p * a.panel_stride, weights[p]);
        __builtin_prefetch(line + p * a.panel_stride + ahead, 0, 2);
      }
      BD_UNROLL
      for (int r = 0; r < kRows; ++r) {
        BD_UNROLL
        for (int i = 0; i < kQuads * kDigits; ++i) {
          const SignedQuads x = SetQuad(digits + r * row_bytes + 4 * i);
          BD_UNROLL
          for (int p = 0; p < kPanels; ++p) {
            IVec& sum_of_digit = acc[r][p][i / kQuads];
            sum_of_digit = DotQuads(sum_of_digit, weights[p][i % kQuads], x);
          }
        }
      }
      line += kLineFloats;
      digits += kDigits * Digits::kRows;
    }
    BD_UNROLL
    for (int p = 0; p < kPanels; ++p) {
      const int64_t at = (panel + p) * kBlock;
      const int n = AtMostLanes(a.columns - at);
      const Vec step = LoadN(a.unscale + g * a.group_stride + at, n);
      const Vec offset = kQuads == 2 ? LoadN(a.offsets + g * a.group_stride + at, n) : Zero();
      BD_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const Vec base = Set1(256.f);
        Vec x = ToFloat(acc[r][p][0]);
        float of_row = static_cast<float>(sums[r * groups * kDigits]);
        for (int d = 1; d < kDigits; ++d) {
          x = Fma(x, base, ToFloat(acc[r][p][d]));
          of_row = of_row * 256.f + static_cast<float>(sums[r * groups * kDigits + d]);
        }
        x = kQuads == 2 ? Fma(Set1(of_row), offset, Mul(x, step)) : Mul(x, step);
        sum[r][p] = Fma(x, Set1(rows.scales[row + r]), sum[r][p]);
      }
    }
  }
  BD_UNROLL
  for (int p = 0; p < kPanels; ++p) {
    BD_UNROLL
    for (int r = 0; r < kRows; ++r) {
      Store(a.dst + a.column[panel + p] + (row + r) * a.dst_stride, sum[r][p]);
    }
  }
}

// Registers hold the sums of each digit of each row and panel; those of taller tiles would spill.
constexpr int kTileRows = 2;
constexpr int PanelsOf(int rows) { return 4 / rows; }

template <typename Digits, int kRows>
void Rows(const ProductArgs& a, const DigitRows& rows, int64_t row) {
  constexpr int kMost = PanelsOf(kRows);
  int panel = 0;
  for (; panel + kMost <= a.num_panels; panel += kMost)
    Tile<Digits, kRows, kMost>(a, rows, row, panel);
  for (; panel < a.num_panels; ++panel) Tile<Digits, kRows, 1>(a, rows, row, panel);
}

template <typename Digits>
void MultiplyBy(const ProductArgs& a, const DigitRows& rows) {
  int64_t row = 0;
  for (; row + kTileRows <= a.rows; row += kTileRows) Rows<Digits, kTileRows>(a, rows, row);
  if (row < a.rows) Rows<Digits, 1>(a, rows, row);
}

void Multiply(const ProductArgs& a, const DigitRows& rows) {
  if (a.weights == DataType::u8) return MultiplyBy<Int4Digits>(a, rows);
  MultiplyBy<Int8Digits>(a, rows);
}

}  // namespace

constexpr DigitKernels kDigitKernels = {Row, Multiply};

#else

constexpr DigitKernels kDigitKernels = {nullptr, nullptr};

#endif

}  // namespace bd::BD_ISA
