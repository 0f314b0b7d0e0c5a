// Functions that are one logarithm: log, log1p, pow.
#pragma once

#include <cfloat>
#include <cmath>

#include "cc/simd/math/math_exp.h"

namespace bd::BD_ISA {
namespace {

// x = 2^e m, sqrt(1/2) <= m < sqrt(2), for 0 < x < inf.
struct LogParts {
  Vec e, m;
};

inline LogParts SplitLog(Vec x) {
  const Mask tiny = Less(x, Set1(FLT_MIN));
  const IVec bits = Bits(Select(tiny, Mul(x, Set1(8388608.f)), x));
  const IVec e = ShiftRight<23>(SubInt(bits, SetInt(0x3f3504f3)));  // the bits of sqrt(1/2)
  return {Sub(ToFloat(e), Select(tiny, Set1(23.f), Zero())),
          FromBits(SubInt(bits, ShiftLeft<23>(e)))};
}

inline Vec Log(Vec x) {
  // log(1 + f) = f - f^2/2 + f^3 p(f); minimax p, relative error of log 2^-29.2.
  constexpr float p[] = {0.333333135f,  -0.250001669f, 0.200022221f,  -0.16659373f, 0.142096356f,
                         -0.125495493f, 0.121080488f,  -0.109170422f, 0.0534140021f};
  const LogParts parts = SplitLog(x);
  const Vec f = Sub(parts.m, Set1(1.f)), square = Mul(f, f);
  Vec y = Mul(Mul(square, f), Polynomial(f, p));
  y = Fma(parts.e, Set1(kLn2Lo), y);
  y = Add(f, NegFma(Set1(0.5f), square, y));
  y = Fma(parts.e, Set1(kLn2Hi), y);
  y = Select(Less(x, Set1(INFINITY)), y, x);  // inf and NaN
  y = Select(Less(x, Zero()), Set1(NAN), y);
  return Select(Equal(x, Zero()), Set1(-INFINITY), y);
}

// log(m) = 2 atanh(t/2) = t + t^3 a(t^2), t = 2 (m - 1) / (m + 1). Returns the
// second term for |t| <= 2/3; minimax a, relative error of log 2^-33.
inline Vec AtanhTail(Vec t) {
  constexpr float a[] = {0.666666746f / 8, 0.399989486f / 32, 0.286152124f / 128,
                         0.214438841f / 512, 0.242452711f / 2048};
  const Vec square = Mul(t, t);
  return Mul(Mul(t, square), Polynomial(square, a));
}

// log(1 + x) for 0 <= x <= 1.
inline Vec Log1pOfUnit(Vec x) {
  const Vec t = Div(Add(x, x), Add(x, Set1(2.f)));
  return Add(t, AtanhTail(t));
}

// log(1 + x) = log(u) x / (u - 1) for u = 1 + x as rounded, whose error cancels (W. Kahan).
inline Vec Log1p(Vec x) {
  const Vec one = Set1(1.f), u = Add(one, x);
  const Vec y = Mul(Log(u), Div(x, Sub(u, one)));
  return Select(Equal(u, one), x, Select(Equal(x, Set1(INFINITY)), x, y));
}

// log(x) to 2^-32 for 0 < x < inf.
inline Pair LogPair(Vec x) {
  const LogParts parts = SplitLog(x);
  const Vec one = Set1(1.f), f = Sub(parts.m, one), twice = Add(f, f);
  // t + t_low = twice / (divisor + divisor_low)
  const Vec divisor = Add(parts.m, one), divisor_low = Sub(parts.m, Sub(divisor, one));
  const Vec reciprocal = Div(one, divisor), t = Mul(twice, reciprocal);
  const Pair product = TwoProduct(t, divisor);
  const Vec rest = NegFma(t, divisor_low, Sub(Sub(twice, product.hi), product.lo));
  const Vec low = Add(Fma(parts.e, Set1(kLn2Lo), Mul(rest, reciprocal)), AtanhTail(t));
  const Pair high = FastTwoSum(Mul(parts.e, Set1(kLn2Hi)), t);
  return FastTwoSum(high.hi, Add(high.lo, low));
}

// x^y for one finite y: what C's powf gives, negative x and y included.
class Power {
 public:
  explicit Power(float y)
      : y_(y),
        integer_(std::fabs(y) >= kAllEven || y == static_cast<float>(static_cast<int32_t>(y))),
        odd_(std::fabs(y) < kAllEven && integer_ && static_cast<int32_t>(y) % 2 != 0) {}

  Vec operator()(Vec x) const {
    if (y_ == 0.f) return Set1(1.f);
    const Vec magnitude = Abs(x), y = Set1(y_);
    const Pair log = LogPair(magnitude);
    const Pair power = TwoProduct(y, log.hi);
    Vec z = Exp({power.hi, Fma(y, log.lo, power.lo)});
    const float at_zero = y_ > 0.f ? 0.f : INFINITY, at_infinity = y_ > 0.f ? INFINITY : 0.f;
    z = Select(Equal(magnitude, Zero()), Set1(at_zero), z);
    z = Select(Equal(magnitude, Set1(INFINITY)), Set1(at_infinity), z);
    if (odd_) z = Or(z, SignOf(x));
    if (!integer_)
      z = Select(Less(magnitude, Set1(INFINITY)), Select(Less(x, Zero()), Set1(NAN), z), z);
    return Select(IsNan(x), x, z);
  }

 private:
  static constexpr float kAllEven = 16777216.f;  // 2^24: floats from here on are even
  float y_;
  bool integer_, odd_;
};

}  // namespace
}  // namespace bd::BD_ISA
