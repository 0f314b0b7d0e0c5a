// sin, cos, atan. Polynomials of S. Moshier, Cephes 2.2.
#pragma once

#include <cmath>

#include "cc/simd/math/math_simple.h"

namespace bd::BD_ISA {
namespace {

// Of x - n pi/2 for |x| <= kReduced, where n has 13 bits: products with the first three parts of
// pi/2, of 11 bits each, are exact.
constexpr float kReduced = 8192.f;

struct QuarterTurns {
  Vec n, rest;
};

inline QuarterTurns Reduce(Vec x) {
  const Vec n = Round(Mul(x, Set1(0.636619772f)));
  Vec rest = NegFma(n, Set1(1.5703125f), x);
  rest = NegFma(n, Set1(0x1.fb4p-12f), rest);
  rest = NegFma(n, Set1(0x1.444p-24f), rest);
  return {n, NegFma(n, Set1(0x1.68c234p-39f), rest)};
}

// sin(rest + n pi/2): sin or cos, of either sign.
inline Vec SinOfTurns(QuarterTurns turns) {
  constexpr float s[] = {-1.6666654611e-1f, 8.3321608736e-3f, -1.9515295891e-4f};
  constexpr float c[] = {4.166664568298827e-2f, -1.388731625493765e-3f, 2.443315711809948e-5f};
  const Vec r = turns.rest, square = Mul(r, r);
  const Vec sine = Fma(Mul(square, Polynomial(square, s)), r, r);
  const Vec half = NegFma(Set1(0.5f), square, Set1(1.f));
  const Vec cosine = Fma(Mul(square, square), Polynomial(square, c), half);
  // n modulo 4: n / 4 has the fraction 0, 1/4, 1/2 or 3/4.
  const Vec whole = Round(Fma(turns.n, Set1(0.25f), Set1(-0.375f)));
  const Vec quarter = NegFma(whole, Set1(4.f), turns.n);
  const Mask odd = Equal(Abs(Sub(quarter, Set1(2.f))), Set1(1.f));
  const Vec y = Select(odd, cosine, sine);
  return Select(Less(Set1(1.5f), quarter), Xor(y, Set1(-0.f)), y);
}

// y, but f of x, by the C library, in lanes that are too large to reduce, or no numbers.
template <typename F>
inline Vec UnlessLarge(Vec x, Vec y, F f) {
  if (All(Less(Abs(x), Set1(kReduced)))) return y;
  float from[kLanes], to[kLanes];
  Store(from, x);
  Store(to, y);
  for (int i = 0; i < kLanes; ++i) {
    if (!(std::fabs(from[i]) < kReduced)) to[i] = f(from[i]);
  }
  return Load(to);
}

inline Vec Sin(Vec x) {
  const Vec y = Select(Equal(x, Zero()), x, SinOfTurns(Reduce(x)));
  return UnlessLarge(x, y, [](float v) { return __builtin_sinf(v); });
}

inline Vec Cos(Vec x) {
  const QuarterTurns turns = Reduce(x);
  const Vec y = SinOfTurns({Add(turns.n, Set1(1.f)), turns.rest});
  return UnlessLarge(x, y, [](float v) { return __builtin_cosf(v); });
}

inline Vec Atan(Vec x) {
  constexpr float p[] = {-3.33329491539e-1f, 1.99777106478e-1f, -1.38776856032e-1f,
                         8.05374449538e-2f};
  const Vec one = Set1(1.f), z = Abs(x);
  const Mask far = Less(Set1(2.414213562f), z), near = Less(z, Set1(0.4142135623f));
  const Vec inverted = Div(Set1(-1.f), z), turned = Div(Sub(z, one), Add(z, one));
  const Vec t = Select(far, inverted, Select(near, z, turned));
  const Vec base = Select(far, Set1(1.57079637f), Select(near, Zero(), Set1(0.785398163f)));
  const Vec square = Mul(t, t);
  const Vec rest = Fma(Mul(square, Polynomial(square, p)), t, t);
  return WithSign(Add(base, rest), x);
}

}  // namespace
}  // namespace bd::BD_ISA
