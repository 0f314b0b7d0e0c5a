// Numbers of 4 bits to floats; included by the per-ISA kernels only.
#pragma once

#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

// What NumbersOf adds to each number: 16 + q has q in the upper bits of its mantissa, so that bits
// are moved there, and nothing is converted.
constexpr float kInt4Base = 16.f;

// kInt4Base + q of number j, of eight, in each dword; number 0 is the lowest bits.
inline Vec NumbersOf(IVec dwords, int j) {
  const auto moved = [&] {
    switch (j) {
      case 0:
        return ShiftLeft<19>(dwords);
      case 1:
        return ShiftLeft<15>(dwords);
      case 2:
        return ShiftLeft<11>(dwords);
      case 3:
        return ShiftLeft<7>(dwords);
      case 4:
        return ShiftLeft<3>(dwords);
      case 5:
        return ShiftRight<1>(dwords);
      case 6:
        return ShiftRight<5>(dwords);
      default:
        return ShiftRight<9>(dwords);
    }
  };
  const IVec bits = SetInt(15 << 19);
#if defined(BD_AVX512) && !defined(BD_EMULATED)  // the two operations in one
  return FromBits(_mm512_ternarylogic_epi32(moved(), bits, Bits(Set1(kInt4Base)), 0xea));
#else
  return Or(And(FromBits(moved()), FromBits(bits)), Set1(kInt4Base));
#endif
}

}  // namespace
}  // namespace bd::BD_ISA
