// The activations that need more than one elementary function.
#ifndef CC_SIMD_MATH_ACTIVATIONS_H_
#define CC_SIMD_MATH_ACTIVATIONS_H_

#include "cc/simd/math_log.h"

namespace bd::BD_ISA {
namespace {

// log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|))
inline Vec SoftRelu(Vec x) { return Add(Max(Zero(), x), Log1pOfUnit(Exp(MinusAbs(x)))); }

inline Vec Elu(Vec x, Vec alpha) {
  return Select(Less(Zero(), x), x, Mul(alpha, Expm1(Min(Zero(), x))));
}

// exp(-r) = 1 - r + r^2 q(-r), |r| <= ln(2) / 2, q that of SplitExp: in powers of r.
constexpr float kExpOfMinus[] = {0.49999997f, -0.16666539f, 0.0416677482f, -0.00836708862f,
                                 0.00138378306f};

// x logistic(x) = x / (1 + exp(-x)). With n + r log2(e) = x log2(e), both sides of
// the division times 2^n neither overflow nor lose a result that is denormal:
//   x 2^n / (2^n + exp(-r))
inline Vec SiluOfAny(Vec x) {
  const Vec one = Set1(1.f), last = Set1(18.f);  // from there on it is x
  const Vec n = Round(Mul(Min(last, Max(Set1(-127.f), x)), Set1(1.44269504f)));
  // Below -127 r leaves its range, and -inf / exp(inf) is not a number, as it must.
  const Vec r = NegFma(n, Set1(kLn2Lo), NegFma(n, Set1(kLn2Hi), x));
  const Vec e = Fma(Mul(r, r), Polynomial(r, kExpOfMinus), Sub(one, r));
  const Vec y = Div(ScaleByPow2(x, n), Add(ScaleByPow2(one, n), e));
  return Select(Less(last, x), x, y);
}

// The same for two vectors. Within 86 of 0 the exponent of exp(-r) takes -n, which
// adding 1.5 * 2^23 leaves in the lowest bits; and step by step for both, as one alone
// waits for its own results (Zen 4: 13.2 cycles a vector, 15.3 one by one, 16.4 of any).
inline void Silu(Vec (&x)[2]) {
  const Vec limit = Set1(86.f), magic = Set1(12582912.f), one = Set1(1.f);
  if (!All(Less(Max(Abs(x[0]), Abs(x[1])), limit))) {  // NaN: in x[1] only, x[0]'s stays one
    for (Vec& v : x) v = SiluOfAny(v);
    return;
  }
  Vec bits[2], r[2], e[2];
#define BD_BOTH _Pragma("GCC unroll 2") for (int i = 0; i < 2; ++i)
  BD_BOTH bits[i] = NegFma(x[i], Set1(1.44269504f), magic);
  BD_BOTH r[i] = Fma(Sub(bits[i], magic), Set1(kLn2Hi), x[i]);
  BD_BOTH r[i] = Fma(Sub(bits[i], magic), Set1(kLn2Lo), r[i]);
  BD_BOTH e[i] = Set1(kExpOfMinus[4]);
  _Pragma("GCC unroll 4") for (int k = 3; k >= 0; --k) {
    BD_BOTH e[i] = Fma(e[i], r[i], Set1(kExpOfMinus[k]));
  }
  BD_BOTH e[i] = Fma(Mul(r[i], r[i]), e[i], Sub(one, r[i]));
  BD_BOTH e[i] = FromBits(AddInt(Bits(e[i]), ShiftLeft<23>(Bits(bits[i]))));
  BD_BOTH x[i] = Div(x[i], Add(one, e[i]));
#undef BD_BOTH
}

// x logistic(alpha x)
inline Vec Swish(Vec x, Vec alpha) { return TimesLogistic(x, TwoProduct(alpha, x)); }

// x tanh(log(1 + exp(x))). With e = exp(-|x|):
//   x < 0    x e (e/2 + 1) / (e (e/2 + 1) + 1)
//   x >= 0   x (1 + 2 e) / (1 + 2 e + 2 e^2)
inline Vec Mish(Vec x) {
  const Vec half = Set1(0.5f), one = Set1(1.f), two = Set1(2.f);
  const ScaledExp e = ExpForProduct({MinusAbs(x), Zero()});
  const Vec below = Fma(half, e.e, one), above = Fma(two, e.e, one);
  const Mask negative = Less(x, Zero());
  return Div(Select(negative, e.Times(Mul(x, below)), Mul(x, above)),
             Select(negative, Fma(e.e, below, one), Fma(Mul(two, e.e), e.e, above)));
}

// x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) = x logistic(x (c1 + c3 x^2)).
// The exponent reaches 100, so it is needed to 2^-31.
inline Vec GeluTanh(Vec x) {
  const Vec c1_hi = Set1(1.59576917f), c1_lo = Set1(-4.53406805e-8f);
  const Vec c3_hi = Set1(0.0713548139f), c3_lo = Set1(2.39883247e-9f);
  const Pair square = TwoProduct(x, x), cubic = TwoProduct(c3_hi, square.hi);
  const Vec cubic_lo = Add(cubic.lo, Fma(c3_hi, square.lo, Mul(c3_lo, square.hi)));
  const Pair slope = TwoSum(c1_hi, cubic.hi);
  const Vec slope_lo = Add(slope.lo, Add(c1_lo, cubic_lo));
  const Pair y = TwoProduct(x, slope.hi);
  return TimesLogistic(x, {y.hi, Fma(x, slope_lo, y.lo)});
}

// x Phi(x) = max(x, 0) - |x| Phi(-|x|), Phi(-z) = exp(-z^2/2) p(z) / q(z);
// rational minimax to z = 14.5, relative error 2^-26.3. Beyond, Phi(-z) is 0.
inline Vec GeluErf(Vec x) {
  constexpr float p[] = {0.5f, 0.438319385f, 0.183252826f, 0.0406390764f, 0.00411712518f};
  constexpr float q[] = {1.f, 1.67452371f, 1.20257747f, 0.469517261f, 0.10187348f, 0.0103199836f};
  const Vec z = Abs(x), bounded = Min(Set1(15.f), z), minus_half = Set1(-0.5f);
  const Pair square = TwoProduct(z, z);
  const ScaledExp e = ExpForProduct({Mul(minus_half, square.hi), Mul(minus_half, square.lo)});
  const Vec ratio = Div(Polynomial(bounded, p), Polynomial(bounded, q));
  const Vec tail = e.Times(Mul(z, ratio));
  return Select(Less(x, Set1(15.f)), Sub(Max(Zero(), x), tail), x);
}

}  // namespace
}  // namespace bd::BD_ISA

#endif  // CC_SIMD_MATH_ACTIVATIONS_H_
