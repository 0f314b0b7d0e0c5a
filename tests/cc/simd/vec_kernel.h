// The words of cc/simd/vec.h over arrays, for the tests.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"

namespace bd {

// Words whose every lane depends on that lane alone, a row each: X(word, of vectors, of floats),
// of which a, b and c are the arguments.
#define BD_VEC_WORDS(X)                                                                            \
  X(kAdd, Add(a, b), a + b)                                                                        \
  X(kSub, Sub(a, b), a - b)                                                                        \
  X(kMul, Mul(a, b), std::multiplies<>()(a, b))                                                    \
  X(kDiv, Div(a, b), a / b)                                                                        \
  X(kSqrt, Sqrt(a), std::sqrt(a))                                                                  \
  X(kRound, Round(a), std::nearbyint(a))                                                           \
  X(kMax, Max(a, b), a > b ? a : b) /* the second operand where either is NaN */                   \
  X(kMin, Min(a, b), a < b ? a : b)                                                                \
  X(kAnd, And(a, b), FloatFromBits(ToBits(a) & ToBits(b)))                                         \
  X(kOr, Or(a, b), FloatFromBits(ToBits(a) | ToBits(b)))                                           \
  X(kXor, Xor(a, b), FloatFromBits(ToBits(a) ^ ToBits(b)))                                         \
  X(kOrXor, FromBits(OrXor(Bits(a), Bits(b), Bits(c))),                                            \
    FloatFromBits(ToBits(a) | (ToBits(b) ^ ToBits(c))))                                            \
  X(kShifts, FromBits(ShiftRight<1>(ShiftLeft<1>(AddInt(Bits(a), SubInt(SetInt(7), SetInt(7)))))), \
    FloatFromBits(static_cast<uint32_t>(static_cast<int32_t>(ToBits(a) << 1) >> 1)))               \
  X(kToFloat, ToFloat(Bits(a)), static_cast<float>(static_cast<int32_t>(ToBits(a))))               \
  X(kLessSelect, Select(Less(a, b), c, a), a < b ? c : a)                                          \
  X(kEqualSelect, Select(Equal(a, b), c, a), a == b ? c : a)                                       \
  X(kNanSelect, Select(IsNan(a), c, a), std::isnan(a) ? c : a)

// Others, with tests of their own.
#define BD_OTHER_VEC_WORDS(X)                                                               \
  X(kFma, Fma(a, b, c))                                                                     \
  X(kFmaInto, FmaOf(a, b, c))                                                               \
  X(kFmaOnce, FmaOnce(a, b, c)) /* rounded once */                                          \
  X(kNegFma, NegFma(a, b, c))                                                               \
  X(kSet1InOrder, FirstLane(a))                                                             \
  X(kProductError, ProductError(a, b, Mul(a, b)))                                           \
  X(kScaleByPow2, ScaleByPow2(a, b))                                                        \
  X(kHasSign, Set1(HasAny(Bits(a), INT32_MIN) ? 1.f : 0.f)) /* of any lane of a's vector */ \
  X(kSwapPairs, SwapPairs(a)) /* lanes 2 and 3 of each 4 of a, then 0 and 1 */              \
  X(kSwapNeighbours, SwapNeighbours(a))

#define BD_WORD(word, ...) word,
enum class VecWord { BD_VEC_WORDS(BD_WORD) BD_OTHER_VEC_WORDS(BD_WORD) };
#undef BD_WORD

// Words of 512-bit vectors, on 16 floats each of a, b and c.
enum class WideWord {
  kFmaAt,  // *a * b + c
  kAddAt,  // b + *a
  kSubAt,  // b - *a
  kHalf,   // lanes 0 to 7: *a * b + c, then c - that * b, + *a, - *(a + 1); zeros after
  kOddsToEvens,
  kOnce,    // LoadOnce(a)
  kStream,  // a, past the caches
};

struct VecKernels {
  int lanes;
  // dst[i] = word(a[i], b[i], c[i]), n a multiple of 16.
  void (*apply)(VecWord word, const float* a, const float* b, const float* c, float* dst,
                int64_t n);
  // dst[0 .. n) = src[0 .. n), n <= lanes; returns the sum over all lanes read.
  float (*copy_first)(const float* src, float* dst, int n);
  // Lanes of src, those from n on as zero.
  void (*keep_first)(const float* src, float* dst, int n);
  // Lanes 4 i to 4 i + 3 from src + i * src_stride to dst + i * dst_stride.
  void (*copy_quads)(const float* src, int64_t src_stride, float* dst, int64_t dst_stride);
  float (*reduce_add)(const float* src);
  float (*reduce_max)(const float* src);
  // Null on generic: Lookup(table, i) for each of `lanes` indices; table has `lookup` entries and
  // is aligned to 64 bytes.
  int lookup;
  void (*look_up)(const int32_t* table, const int32_t* i, int32_t* dst);
  // Null where a Vec has less than 512 bits; dst is aligned to 64 bytes.
  void (*wide)(WideWord word, const float* a, const float* b, const float* c, float* dst);
  void (*reduce_add_each)(const float* src, float* dst);  // sums of 16 rows of 16
};

BD_KERNEL_TABLE(VecKernels)

}  // namespace bd
