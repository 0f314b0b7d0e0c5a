#include "cc/core/rnn/rnn_row_kernel.h"

#include "cc/core/gemm/tiles/product_kernel.h"
#include "cc/simd/convert/bf16.h"
#include "cc/simd/convert/convert.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {

#if defined(BD_AVX512_BF16)

namespace {

inline Mask Finite(Vec x) { return Less(Xor(x, And(x, Set1(-0.f))), Set1(__builtin_inff())); }

inline Vec Within(float most, Vec x) { return Max(Min(x, Set1(most)), Set1(-most)); }

void Split(const float* src, int64_t count, Bfloat16* upper, Bfloat16* lower) {
  for (int64_t i = 0; i < count; i += kLanes) {
    const int lanes = AtMostLanes(count - i);
    const Vec x = LoadN(src + i, lanes);
    alignas(64) Bfloat16 parts[2][kLanes];
    // Neither the upper part nor the sum of both is rounded to an infinity.
    StoreAs(parts[0], Select(Finite(x), Within(0x1.fep127f, x), x));
    const Vec rest = Sub(Within(0x1.fffep127f, x), LoadAs(parts[0]));
    StoreAs(parts[1], Select(Finite(x), rest, Zero()));
    __builtin_memcpy(upper + i, parts[0], lanes * sizeof(Bfloat16));
    __builtin_memcpy(lower + i, parts[1], lanes * sizeof(Bfloat16));
  }
}

template <int kPanels>
void Panels(const RnnRowArgs& a, int panel) {
  Vec upper[kPanels], lower[kPanels];
#pragma GCC unroll 4
  for (int p = 0; p < kPanels; ++p) upper[p] = lower[p] = Zero();
  const float* line = a.panels + panel * a.panel_stride;
#pragma GCC unroll 4
  for (int64_t k = 0; k < a.k; k += 2, line += kLineFloats) {
    const Pairs u = SetPair(a.upper + k), l = SetPair(a.lower + k);
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      const Pairs w = LoadPairs(reinterpret_cast<const Bfloat16*>(line + p * a.panel_stride));
      upper[p] = DotPairs(upper[p], u, w);
      lower[p] = DotPairs(lower[p], l, w);
    }
  }
#pragma GCC unroll 4
  for (int p = 0; p < kPanels; ++p) {
    const Vec sum = Select(Finite(upper[p]), Add(upper[p], lower[p]), upper[p]);
    float* const to = a.sums + a.column[panel + p];
    const float* unscale = a.unscale + (panel + p) * kBlock;
    Store(to, a.unscale == nullptr ? Add(Load(to), sum) : Fma(sum, Load(unscale), Load(to)));
  }
}

void Multiply(const RnnRowArgs& a) {
  int panel = 0;
  for (; panel + 4 <= a.num_panels; panel += 4) Panels<4>(a, panel);
  if (a.num_panels - panel >= 2) {
    Panels<2>(a, panel);
    panel += 2;
  }
  if (a.num_panels - panel == 1) Panels<1>(a, panel);
}

// The bits of byte q as a float are those of a bfloat16 and 16 zeros.
void Bfloat16FromBytes(const float* bytes, int64_t k, float* dst) {
  const auto* row = reinterpret_cast<const int8_t*>(bytes);
  for (int64_t i = 0; i < k; i += 2, row += 2 * kBlock, dst += kLineFloats) {
    const IVec first = ShiftRight<16>(Bits(LoadAs(row))), second = Bits(LoadAs(row + kBlock));
    Store(dst, Or(And(FromBits(first), FromBits(SetInt(0xffff))), FromBits(second)));
  }
}

}  // namespace

constexpr RnnRowKernels kRnnRowKernels = {Split, Multiply, Bfloat16FromBytes};

#else

constexpr RnnRowKernels kRnnRowKernels = {};

#endif

}  // namespace bd::BD_ISA
