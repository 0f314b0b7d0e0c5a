// Values of twice the precision, and the small parts the functions share.
#pragma once

#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

// hi + lo, where lo is within rounding of hi: about 48 bits.
struct Pair {
  Vec hi, lo;
};

inline Pair TwoProduct(Vec a, Vec b) {
  const Vec product = Mul(a, b);
  return {product, ProductError(a, b, product)};
}

// a + b without error where |a| >= |b| or a = 0.
inline Pair FastTwoSum(Vec a, Vec b) {
  const Vec sum = Add(a, b);
  return {sum, Sub(b, Sub(sum, a))};
}

// a + b without error.
inline Pair TwoSum(Vec a, Vec b) {
  const Vec sum = Add(a, b), b_part = Sub(sum, a), a_part = Sub(sum, b_part);
  return {sum, Add(Sub(a, a_part), Sub(b, b_part))};
}

inline Vec SignOf(Vec x) { return And(x, Set1(-0.f)); }
inline Vec Abs(Vec x) { return Xor(x, SignOf(x)); }
inline Vec MinusAbs(Vec x) { return Or(x, Set1(-0.f)); }
inline Vec WithSign(Vec x, Vec sign) { return Or(Abs(x), SignOf(sign)); }

// c[0] + c[1] x + ... + c[n - 1] x^(n - 1)
template <int n>
inline Vec Polynomial(Vec x, const float (&c)[n]) {
  Vec p = Set1(c[n - 1]);
#pragma GCC unroll 16
  for (int i = n - 2; i >= 0; --i) p = Fma(p, x, Set1(c[i]));
  return p;
}

// ln 2 = kLn2Hi + kLn2Lo; the first has 15 bits, so that its product with an
// exponent is exact even where Fma is not fused.
constexpr float kLn2Hi = 0.693145752f, kLn2Lo = 1.42860677e-6f;

}  // namespace
}  // namespace bd::BD_ISA
