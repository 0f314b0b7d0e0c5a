// The activations that need more than one elementary function.
#pragma once

#include "cc/simd/math/math_log.h"

namespace bd::BD_ISA {
namespace {

// x / (1 + |x|), which is NaN at infinities, as in TensorFlow.
inline Vec Softsign(Vec x) { return Div(x, Add(Set1(1.f), Abs(x))); }

// log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|))
inline Vec SoftRelu(Vec x) { return Add(Max(Zero(), x), Log1pOfUnit(Exp(MinusAbs(x)))); }

inline Vec Elu(Vec x, Vec alpha) {
  return Select(Less(Zero(), x), x, Mul(alpha, NegativeExpm1(Min(Zero(), x))));
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

// Silu's short way, where -20 < x < 68. For k = -kParts log2(e) x, rounded,
//   exp(-x) = 2^(k / kParts) exp(-r),   r = x + k ln(2) / kParts
// Adding kMagic = 1.5 * 2^23 + kFirst rounds, and leaves k + kFirst in the lowest bits; the
// bits above kWindow are then those of 1.5 * 2^23, unless x is out of reach or not a number.
//
// With a table of powers of two a short polynomial does: exp(-r) = p(r) / p(0), where p begins
// with a power of r times one, and the table has 2^(i / kParts) / p(0) less (i + kFirst) <<
// (23 - kPartBits), so that adding (k + kFirst) << (23 - kPartBits) makes it 2^(k / kParts) / p(0).
// Of many p(0) with which p is good enough each is a lucky one in how the table rounds.
#if defined(BD_AVX512)
constexpr int kPartBits = 5;
alignas(64) constexpr int32_t kPowers[kLookup] = {
    0x0d800d20, 0x0d7edaf0, 0x0d7db878, 0x0d7ca610, 0x0d7ba412, 0x0d7ab2da, 0x0d79d2c6, 0x0d790436,
    0x0d78478c, 0x0d779d2d, 0x0d77057f, 0x0d7680eb, 0x0d760fdc, 0x0d75b2bf, 0x0d756a05, 0x0d75361f,
    0x0d751783, 0x0d750ea7, 0x0d751c06, 0x0d75401b, 0x0d757b68, 0x0d75ce6d, 0x0d7639af, 0x0d76bdb7,
    0x0d775b0f, 0x0d781246, 0x0d78e3ec, 0x0d79d095, 0x0d7ad8d9, 0x0d7bfd53, 0x0d7d3ea0, 0x0d7e9d63};
// To 2^-24.2; swish to 3.3 ulp.
inline Vec PowersPolynomial(Vec r) { return Fma(Add(r, Set1(-1.99922812f)), r, Set1(1.99919927f)); }
// To 2^-14.2, exp(-r) = (c - r) / p(0), c = kStraight ln(2) / kParts: r - c takes no operation more
// than r does, with k less kStraight in the place of k. |r| <= ln(2) / 64, and c is close to 1.
constexpr int kStraight = 46;
alignas(64) constexpr int32_t kStraightPowers[kLookup] = {
    0x0e0077f0, 0x0dff4817, 0x0dfe2803, 0x0dfd180c, 0x0dfc188d, 0x0dfb29e1, 0x0dfa4c69, 0x0df98082,
    0x0df8c692, 0x0df81efa, 0x0df78a24, 0x0df70878, 0x0df69a61, 0x0df6404d, 0x0df5faac, 0x0df5c9f1,
    0x0df5ae91, 0x0df5a904, 0x0df5b9c4, 0x0df5e14e, 0x0df62022, 0x0df676c2, 0x0df6e5b4, 0x0df76d81,
    0x0df80eb2, 0x0df8c9d8, 0x0df99f83, 0x0dfa9047, 0x0dfb9cbe, 0x0dfcc582, 0x0dfe0b31, 0x0dff6e6f};
#elif defined(__AVX2__)
constexpr int kPartBits = 3;
alignas(64) constexpr int32_t kPowers[kLookup] = {-0x73550e98, -0x735595d9, -0x7354b6a0,
                                                  -0x7352507a, -0x734e4007, -0x734c2f58,
                                                  -0x73504131, -0x73533e9d};
// To 2^-25; swish to 2.8 ulp.
inline Vec PowersPolynomial(Vec r) {
  return Fma(Fma(Add(r, Set1(-2.9956539f)), r, Set1(5.9902997f)), r, Set1(-5.990301f));
}
#else
constexpr int kPartBits = 0;
#endif
constexpr int kParts = 1 << kPartBits, kWindow = 128 * kParts, kFirst = 99 * kParts;
constexpr float kMagic = 12582912.f + kFirst;

// k and kMagic.
inline Vec MinusParts(Vec x) { return NegFma(x, Set1(kParts * 1.44269504f), Set1(kMagic)); }

// `near` where k is within reach, or else `far`.
inline Vec WithinReach(Vec rounded, Vec near, Vec far) {
  const Vec unless_large = Select(Less(rounded, Set1(12582912.f + kWindow)), near, far);
  return Select(Less(rounded, Set1(12582912.f)), far, unless_large);
}

// 1 + exp(-x) from MinusParts(x).
inline Vec OnePlusExp(Vec x, Vec rounded) {
  const Vec k = Sub(rounded, Set1(kMagic)), one = Set1(1.f);
#if defined(__AVX2__)
  const Vec r = Fma(k, Set1(0.69314718f / kParts), x);
  const IVec power =
      AddInt(Lookup(kPowers, Bits(rounded)), ShiftLeft<23 - kPartBits>(Bits(rounded)));
  return Fma(PowersPolynomial(r), FromBits(power), one);
#else
  const Vec r = Fma(k, Set1(kLn2Lo), Fma(k, Set1(kLn2Hi), x));
  const Vec e = Fma(Mul(r, r), Polynomial(r, kExpOfMinus), Sub(one, r));
  const IVec n = SubInt(Bits(rounded), SetInt(kFirst));
  return Add(one, FromBits(AddInt(Bits(e), ShiftLeft<23>(n))));
#endif
}

// x logistic(x) from MinusParts(x), within reach. `kRough`: of results that become bfloat16, which
// are half a unit, 2^-9 to 2^-8, beside what they stand for in any case. With AVX-512 they err by
// 2^-13 then: 2^-14.2 of the exponential and 2^-14 of the reciprocal.
template <bool kRough>
BD_INLINE Vec SiluNear(Vec x, Vec rounded) {
#if defined(BD_AVX512)
  if constexpr (kRough) {
    const Vec r_minus_c =
        Fma(Sub(rounded, Set1(kMagic + kStraight)), Set1(0.69314718f / kParts), x);
    const IVec power =
        AddInt(Lookup(kStraightPowers, Bits(rounded)), ShiftLeft<23 - kPartBits>(Bits(rounded)));
    return Mul(x, Reciprocal14(NegFma(r_minus_c, FromBits(power), Set1(1.f))));
  }
#endif
  return Div(x, OnePlusExp(x, rounded));
}

// x logistic(x) of n vectors into y, unless one of them is out of reach: then it is false, and y
// is left alone (Zen 4: 9.4 cycles a vector by four, 9.8 one by one; 16 the long way).
template <bool kRough = false, int n>
BD_INLINE bool SiluWithinReach(const Vec (&x)[n], Vec (&y)[n]) {
  Vec rounded[n];
  IVec outside = SetInt(0);
#pragma GCC unroll 4
  for (int i = 0; i < n; ++i) {
    rounded[i] = MinusParts(x[i]);
    outside = OrXor(outside, Bits(rounded[i]), SetInt(0x4b400000));
  }
  if (HasAny(outside, ~(kWindow - 1))) return false;
#pragma GCC unroll 4
  for (int i = 0; i < n; ++i) y[i] = SiluNear<kRough>(x[i], rounded[i]);
  return true;
}

// x logistic(x) of n vectors. A result depends on its own x only, not on its neighbours: where
// some are out of reach, those that are not still go the short way.
template <bool kRough = false, int n>
inline void Silu(Vec (&x)[n]) {
  if (SiluWithinReach<kRough>(x, x)) return;
  for (Vec& v : x) {
    const Vec rounded = MinusParts(v);
    v = WithinReach(rounded, SiluNear<kRough>(v, rounded), SiluOfAny(v));
  }
}

// Of results that become bytes: step x -> step x logistic(step x), n vectors of steps of the bytes.
// |x| < 2^30.
#if defined(BD_AVX512)
// logistic(u kSiluPiece) by 31 parabolas about the integers, square u^2 + slope u + start, each the
// minimax of errors times max(|x|, 0.4): that of the product is at most 2.0e-4 and 2.4e-4 |x|, 0.04
// steps where results reach from swish's minimum to 1 or more, 0.16 where they end at 0.05. At
// kSiluLimit the outermost are 0 (to 2^-38) and 1. These are about -k, k from 0; logistic(x) = 1 -
// logistic(-x) gives those about k.
constexpr float kSiluPiece = 0.72f, kSiluLimit = 15.49f;
constexpr int kSiluPieces = 16;
constexpr float kSiluParabolas[kSiluPieces][3] = {
    {0.f, 0.17855908f, 0.5f},
    {0.019812774f, 0.19738954f, 0.5049277f},
    {0.024440786f, 0.2093691f, 0.51253724f},
    {0.018924365f, 0.18076791f, 0.4753994f},
    {0.011651073f, 0.1298511f, 0.38614377f},
    {0.0063784397f, 0.08268007f, 0.28053764f},
    {0.003291031f, 0.048958313f, 0.18839815f},
    {0.0016487319f, 0.027755558f, 0.119932994f},
    {0.00081405346f, 0.015315435f, 0.07356512f},
    {0.00039907114f, 0.008302008f, 0.043924667f},
    {0.00019494878f, 0.004444418f, 0.025695274f},
    {9.506865e-05f, 0.0023572193f, 0.014789344f},
    {4.6321242e-05f, 0.0012410949f, 0.008399718f},
    {2.2559803e-05f, 0.0006495454f, 0.004717567f},
    {1.0984859e-05f, 0.00033823965f, 0.002624226f},
    {-0.00011531759f, -0.003444242f, -0.025681995f},
};
static_assert(kLookup == 2 * kSiluPieces);

// One coefficient of all of them, for round(u) modulo 32.
struct SiluTable {
  constexpr explicit SiluTable(int coefficient) {
    for (int k = 0; k < kSiluPieces; ++k) {
      const float c = kSiluParabolas[k][coefficient];
      of_piece[(kLookup - k) % kLookup] = c;
      of_piece[k] = coefficient == 0 ? -c : coefficient == 1 ? c : 1.f - c;
    }
  }
  alignas(64) float of_piece[kLookup] = {};
};
constexpr SiluTable kSiluSquare(0), kSiluSlope(1), kSiluStart(2);

template <int n>
BD_INLINE void SiluOfSteps(float step, Vec (&x)[n]) {
  const auto of_piece = [](const SiluTable& table, Vec rounded) {
    return FromBits(Lookup(reinterpret_cast<const int32_t*>(table.of_piece), Bits(rounded)));
  };
  Vec u[n], rounded[n], y[n];
#pragma GCC unroll 4
  for (int i = 0; i < n; ++i) {
    u[i] = ClampMagnitude(Mul(x[i], Set1(step / kSiluPiece)), Set1(kSiluLimit));
  }
#pragma GCC unroll 4
  for (int i = 0; i < n; ++i) {
    rounded[i] = Add(u[i], Set1(12582912.f));  // round(u) is in the lowest bits
    y[i] = Fma(of_piece(kSiluSquare, rounded[i]), u[i], of_piece(kSiluSlope, rounded[i]));
  }
#pragma GCC unroll 4
  for (int i = 0; i < n; ++i) {
    x[i] = Mul(x[i], Fma(y[i], u[i], of_piece(kSiluStart, rounded[i])));
  }
}
#else
template <int n>
BD_INLINE void SiluOfSteps(float step, Vec (&x)[n]) {
  for (Vec& v : x) v = Mul(v, Set1(step));
  Silu(x);
  for (Vec& v : x) v = Mul(v, Set1(1.f / step));
}
#endif

// Logistic's short way has Silu's reach, and in two more steps its bound: r in two parts, and a
// polynomial of a degree more, whose p(0) is chosen so that it and the table round best where
// 1 + exp(-x) is just above a power of two, and an ulp of the result is smallest.
#if defined(BD_AVX512)
alignas(64) constexpr int32_t kLogisticPowers[kLookup] = {
    -0x7354ea35, -0x73552b29, -0x7355571d, -0x73556d9b, -0x73556e2b, -0x73555852, -0x73552b92,
    -0x7354e76b, -0x73548b5a, -0x735416d9, -0x7353895e, -0x7352e25e, -0x7352214a, -0x7351458f,
    -0x73504e98, -0x734f3bcd, -0x734e0c91, -0x734cc045, -0x734b5646, -0x734ae6f7, -0x734c1349,
    -0x734d2fc2, -0x734e3c0a, -0x734f37c5, -0x73502298, -0x7350fc22, -0x7351c404, -0x735279da,
    -0x73531d3f, -0x7353adcc, -0x73542b17, -0x735494b4};
inline Vec LogisticPolynomial(Vec r) {  // to 2^-27.6
  return Fma(Fma(Add(r, Set1(-2.99268699f)), r, Set1(5.98532438f)), r, Set1(-5.98532438f));
}
#elif defined(__AVX2__)
alignas(64) constexpr int32_t kLogisticPowers[kLookup] = {
    0x0b87d9b8, 0x0b84255f, 0x0b818de9, 0x0b802d1f, 0x0b801f1f, 0x0b818293, 0x0b8478eb, 0x0b89269e};
inline Vec LogisticPolynomial(Vec r) {  // to 2^-27.3
  const Vec p = Fma(Add(r, Set1(-5.0255065f)), r, Set1(15.0758009f));
  return Fma(Fma(p, r, Set1(-30.1507988f)), r, Set1(30.1507988f));
}
#endif

inline Vec Logistic(Vec x) {
#if defined(__AVX2__)
  const Vec rounded = MinusParts(x), one = Set1(1.f), k = Sub(rounded, Set1(kMagic));
  const Vec r = Fma(k, Set1(kLn2Lo / kParts), Fma(k, Set1(kLn2Hi / kParts), x));
  const IVec power =
      AddInt(Lookup(kLogisticPowers, Bits(rounded)), ShiftLeft<23 - kPartBits>(Bits(rounded)));
  const Vec near = Div(one, Fma(LogisticPolynomial(r), FromBits(power), one));
  const IVec outside = OrXor(SetInt(0), Bits(rounded), SetInt(0x4b400000));
  if (!HasAny(outside, ~(kWindow - 1))) return near;
  return WithinReach(rounded, near, LogisticOfAny(x));
#else
  return LogisticOfAny(x);
#endif
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

// x Phi(x), Phi(x) = 1/2 + h(x), where h(x) = x p(x^2) / q(x^2) is a rational minimax to
// |x| = 5.5, within 2^-27; beyond, h is 1/2 with the sign of x, within 2^-25. Where x is negative
// and large 1/2 and h cancel, as in 1 + erf(x / sqrt(2)): the error is a part of x then, not of the
// result.
inline Vec GeluErf(Vec x) {
  constexpr float p[] = {0.39894223f,   0.033852905f,  0.0046772766f,
                         0.0001688282f, 6.352125e-06f, 2.2749157e-08f};
  constexpr float q[] = {1.f,           0.25152257f,    0.02864602f,
                         0.0018844595f, 7.3648254e-05f, 1.1974982e-06f};
  const Vec reach = Set1(5.5f), half = Set1(0.5f);
  const Vec z = Min(reach, Max(Sub(Zero(), reach), x)), square = Mul(z, z);
  const Vec near = Div(Mul(z, Polynomial(square, p)), Polynomial(square, q));
  const Vec h = Select(Less(reach, Abs(x)), WithSign(half, x), near);
  return Mul(x, Add(half, h));
}

}  // namespace
}  // namespace bd::BD_ISA
