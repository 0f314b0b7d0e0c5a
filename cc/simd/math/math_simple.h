// Functions of a few instructions, of one value and of two; special values as TensorFlow's.
#pragma once

#include "cc/simd/math/math_pair.h"

namespace bd::BD_ISA {
namespace {

inline Vec Square(Vec x) { return Mul(x, x); }
inline Vec Reciprocal(Vec x) { return Div(Set1(1.f), x); }
inline Vec Rsqrt(Vec x) { return Div(Set1(1.f), Sqrt(x)); }

inline Vec Floor(Vec x) {
  const Vec nearest = Round(x);
  return Sub(nearest, Select(Less(x, nearest), Set1(1.f), Zero()));
}
inline Vec Ceil(Vec x) { return Xor(Floor(Xor(x, Set1(-0.f))), Set1(-0.f)); }

// Zeros and NaN are what they are.
inline Vec Sign(Vec x) {
  const Vec y = Select(Equal(x, Zero()), x, WithSign(Set1(1.f), x));
  return Select(IsNan(x), x, y);
}

inline Vec ReversedDiv(Vec x, Vec o) { return Div(o, x); }
inline Vec Prelu(Vec x, Vec slope) { return Select(Less(x, Zero()), Mul(x, slope), x); }
inline Vec DivNoNan(Vec x, Vec o) { return Select(Equal(o, Zero()), Zero(), Div(x, o)); }
inline Vec FloorDiv(Vec x, Vec o) { return Floor(Div(x, o)); }

// Exact, and therefore lane by lane, as in TensorFlow.
inline Vec FloorMod(Vec x, Vec o) {
  float a[kLanes], b[kLanes];
  Store(a, x);
  Store(b, o);
  for (int i = 0; i < kLanes; ++i) {
    const float rest = __builtin_fmodf(a[i], b[i]);
    a[i] = rest != 0.f && (b[i] < 0.f) != (rest < 0.f) ? rest + b[i] : rest;
  }
  return Load(a);
}

inline Vec OneOrZero(Mask m) { return Select(m, Set1(1.f), Zero()); }
inline Vec IsLess(Vec x, Vec o) { return OneOrZero(Less(x, o)); }
inline Vec IsGreater(Vec x, Vec o) { return OneOrZero(Less(o, x)); }
inline Vec IsEqual(Vec x, Vec o) { return OneOrZero(Equal(x, o)); }
inline Vec IsNotEqual(Vec x, Vec o) { return Select(Equal(x, o), Zero(), Set1(1.f)); }
inline Vec IsLessEqual(Vec x, Vec o) { return Max(IsLess(x, o), IsEqual(x, o)); }
inline Vec IsGreaterEqual(Vec x, Vec o) { return IsLessEqual(o, x); }

// What is dropped is -0, which changes no number that it is added to.
inline Vec Keep(Vec x, Vec o) { return Select(Equal(o, Zero()), Zero(), x); }
inline Vec Drop(Vec x, Vec o) { return Select(Equal(o, Zero()), x, Set1(-0.f)); }

}  // namespace
}  // namespace bd::BD_ISA
