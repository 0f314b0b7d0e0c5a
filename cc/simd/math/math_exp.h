// Functions that are one exponential: exp, expm1, logistic, tanh.
#pragma once

#include "cc/simd/math/math_pair.h"

namespace bd::BD_ISA {
namespace {

// exp(x) = 2^n (1 + m), m = expm1(r), x = n ln 2 + r, |r| <= ln(2) / 2.
struct ExpParts {
  Vec n, m;
};

inline ExpParts SplitExp(Pair x) {
  // expm1(r) = r + r^2 q(r); minimax q, relative error of expm1 2^-26.1.
  constexpr float q[] = {0.49999997f, 0.16666539f, 0.0416677482f, 0.00836708862f, 0.00138378306f};
  const Vec n = Round(Mul(x.hi, Set1(1.44269504f)));
  Vec r = NegFma(n, Set1(kLn2Hi), x.hi);
  r = Add(NegFma(n, Set1(kLn2Lo), r), x.lo);
  return {n, Fma(Mul(r, r), Polynomial(r, q), r)};
}

// Beyond [lowest, 89] exp is 0 or inf. The low part of an overflowing hi is
// not a number, of others below 2^-17.
inline Pair ClampExponent(Pair x, float lowest) {
  const Vec limit = Set1(1.52587891e-5f);
  return {Min(Set1(89.f), Max(Set1(lowest), x.hi)), Min(Max(x.lo, Sub(Zero(), limit)), limit)};
}

inline Vec Exp(Pair x) {
  const ExpParts e = SplitExp(ClampExponent(x, -104.f));
  return ScaleByPow2(Add(Set1(1.f), e.m), e.n);
}

inline Vec Exp(Vec x) { return Exp({x, Zero()}); }

// The same for -104 <= x <= 0, with 2^(n + kUp) at the price of a shift: adding kRoundUp rounds,
// and leaves n + 127 + kUp in the lowest bits, where a shift makes it the exponent of a float.
constexpr int kUp = 64;                             // so that it is normal, however small exp(x)
constexpr float kRoundUp = 12582912.f + 127 + kUp;  // 1.5 * 2^23 and the exponent's bias

struct NegativeExpParts {
  Vec raised, m;  // 2^(n + kUp)
};

inline NegativeExpParts SplitNegativeExp(Vec x) {
  constexpr float q[] = {0.49999997f, 0.16666539f, 0.0416677482f, 0.00836708862f, 0.00138378306f};
  const Vec rounded = Fma(x, Set1(1.44269504f), Set1(kRoundUp));
  const Vec n = Sub(rounded, Set1(kRoundUp));
  const Vec r = NegFma(n, Set1(kLn2Lo), NegFma(n, Set1(kLn2Hi), x));
  return {FromBits(ShiftLeft<23>(Bits(rounded))), Fma(Mul(r, r), Polynomial(r, q), r)};
}

// exp(x) for x <= 0, to the last denormal number.
inline Vec NegativeExp(Vec x) {
  const NegativeExpParts e = SplitNegativeExp(Max(Set1(-104.f), x));
  return Mul(Fma(e.raised, e.m, e.raised), Set1(0x1p-64f));
}

// exp(x) - 1 for x <= 0: 2^n m + (2^n - 1).
inline Vec NegativeExpm1(Vec x) {
  const NegativeExpParts e = SplitNegativeExp(Max(Set1(-25.f), x));
  const Vec power = Mul(e.raised, Set1(0x1p-64f));
  return Fma(power, e.m, Sub(power, Set1(1.f)));
}

// e = exp(-|x|) keeps 1 / (1 + exp(-x)) exact to the last denormal.
inline Vec LogisticOfAny(Vec x) {
  const Vec one = Set1(1.f), e = NegativeExp(MinusAbs(x));
  return Div(Select(Less(x, Zero()), e, one), Add(one, e));
}

// exp(x) - 1, by halves, since 2^n alone may overflow.
inline Vec Expm1(Vec x) {
  const ExpParts e = SplitExp({Min(Set1(89.f), Max(Set1(-25.f), x)), Zero()});
  const Vec half = ScaleByPow2(Set1(0.5f), e.n);
  const Vec y = Fma(half, e.m, Sub(half, Set1(0.5f)));
  return Select(Equal(x, Zero()), x, Add(y, y));
}

// tanh |x| = -t / (t + 2), t = expm1(-2 |x|).
inline Vec Tanh(Vec x) {
  const Vec t = NegativeExpm1(MinusAbs(Add(x, x)));
  return WithSign(Div(t, Add(t, Set1(2.f))), x);
}

// exp(x) for x <= 0 that may underflow before it is multiplied by a factor.
struct ScaledExp {
  Vec e;       // exp(x)
  Vec scaled;  // 2^32 exp(x), normal where a product of about 1 is
  Vec Times(Vec factor) const { return Mul(Mul(factor, scaled), Set1(2.32830644e-10f)); }
};

inline ScaledExp ExpForProduct(Pair x) {
  const ExpParts parts = SplitExp(ClampExponent(x, -127.f));
  const Vec scaled = ScaleByPow2(Add(Set1(1.f), parts.m), Add(parts.n, Set1(32.f)));
  return {Mul(scaled, Set1(2.32830644e-10f)), scaled};
}

// x * logistic(y)
inline Vec TimesLogistic(Vec x, Pair y) {
  const Vec flip = Xor(SignOf(y.hi), Set1(-0.f));
  const ScaledExp e = ExpForProduct({MinusAbs(y.hi), Xor(y.lo, flip)});
  return Div(Select(Less(y.hi, Zero()), e.Times(x), x), Add(Set1(1.f), e.e));
}

}  // namespace
}  // namespace bd::BD_ISA
