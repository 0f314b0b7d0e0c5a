// Errors in units in the last place (ulp) of a float result, and the floats to
// measure them at.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace bd {

inline float FloatFromBits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

// Of the float that `exact` rounds to; below FLT_MIN it is 2^-149.
inline double Ulp(double exact) {
  const int exponent = exact == 0. ? -126 : std::max(-126, std::min(127, std::ilogb(exact)));
  return std::ldexp(1., exponent - 23);
}

// |got - exact| in units of `ulp`; inf where the two disagree about being NaN or
// infinite.
inline double ErrorIn(double ulp, float got, double exact) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  if (std::isnan(exact) || std::isnan(got)) return std::isnan(exact) && std::isnan(got) ? 0. : kInf;
  const double beyond = std::ldexp(1., 128);  // the float after FLT_MAX
  if (std::fabs(exact) >= beyond) {
    return got == static_cast<float>(std::copysign(kInf, exact)) ? 0. : kInf;
  }
  const double value = std::isinf(got) ? std::copysign(beyond, got) : got;
  return std::fabs(value - exact) / ulp;
}

inline double UlpError(float got, double exact) { return ErrorIn(Ulp(exact), got, exact); }

// add(bits) for every exponent of both signs with its outermost mantissas, hence
// zeros, denormals, infinities and NaN, and for one float in `stride` of all.
template <typename Add>
void ForFloats(uint32_t stride, Add add) {
  for (uint32_t exponent = 0; exponent < 512; ++exponent) {  // with the sign
    for (uint32_t mantissa : {0u, 1u, 2u, 0x3504f3u, 0x400000u, 0x7ffffeu, 0x7fffffu}) {
      add(exponent << 23 | mantissa);
    }
  }
  for (uint64_t bits = 0; bits <= UINT32_MAX; bits += stride) add(static_cast<uint32_t>(bits));
}

}  // namespace bd
