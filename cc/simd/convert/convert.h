// Loads and stores of every data type, as vectors of float.
//
//   LoadAs(p)       kLanes elements at p as a Vec; integers are rounded to float
//   StoreAs(p, v)   v rounded to nearest, ties to even, and saturated:
//     Bfloat16, Float16   overflow to infinity, gradual underflow; a NaN stays one
//                         and keeps its sign and the leading bits
//     int32, int8, uint8  beyond the largest or smallest number that one; NaN is 0
//   StoreAs(p, v, w)  StoreAs of v, and of w after it
//
// The results do not depend on the instruction set, nor on the flush-to-zero mode,
// float32 numbers below 2^-126 apart. (AVX512_BF16 takes these for zero.)
//
// Beneath lie, in one small file an instruction set:
//
//   LoadInt(p)           kLanes of int32, int8, uint8 or uint16 as an IVec
//   StoreInt(p, i)       the way back, for values in the range of the type; to
//                        uint16 for those in the range of int16
//   RoundToInt(v)        nearest, ties to even; 0x80000000 outside the range
//   StoreBytes(p, i, b)  4 vectors i[] to unsigned bytes, neighbours as those in memory:
//                        saturated, of int16 + b.zero_point, then between b.low and b.high
//   FloatFromHalf(p)     kLanes of Float16
//   StoreHalf(p, v)
#pragma once

#include "cc/base/data_type.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

// In all lanes: a word each of the zero point, a byte each of the bounds; and whether they change
// anything.
struct ByteBounds {
  ByteBounds() = default;
  ByteBounds(int32_t zero, int32_t least, int32_t most)
      : shifts(zero != 0),
        bounds(least > 0 || most < 255),
        zero_point(SetInt(zero * 0x10001)),
        low(SetInt(static_cast<int32_t>(uint32_t{0x01010101} * static_cast<uint32_t>(least)))),
        high(SetInt(static_cast<int32_t>(uint32_t{0x01010101} * static_cast<uint32_t>(most)))) {}
  bool shifts, bounds;
  IVec zero_point, low, high;
};

}  // namespace
}  // namespace bd::BD_ISA

#if defined(BD_EMULATED)
#include "cc/simd/convert/convert_avx512_emulated.h"
#elif defined(BD_AVX512)
#include "cc/simd/convert/convert_avx512.h"
#elif defined(__AVX2__)
#include "cc/simd/convert/convert_avx2.h"
#else
#include "cc/simd/convert/convert_generic.h"
#endif

namespace bd::BD_ISA {
namespace {

inline Vec LoadAs(const float* p) { return Load(p); }
inline Vec LoadAs(const Bfloat16* p) { return FromBits(ShiftLeft<16>(LoadInt(&p->bits))); }
inline Vec LoadAs(const Float16* p) { return FloatFromHalf(p); }
inline Vec LoadAs(const int32_t* p) { return ToFloat(LoadInt(p)); }
inline Vec LoadAs(const int8_t* p) { return ToFloat(LoadInt(p)); }
inline Vec LoadAs(const uint8_t* p) { return ToFloat(LoadInt(p)); }

inline void StoreAs(float* p, Vec v) { Store(p, v); }

#if defined(BD_AVX512_BF16) && !defined(BD_EMULATED)
inline void StoreAs(Bfloat16* p, Vec v) { StoreBfloat16(p, v); }
#else
inline void StoreAs(Bfloat16* p, Vec v) {
  // Half a unit of the last place kept, and the even one of two equally near.
  const IVec high = ShiftRight<16>(Bits(v));
  const IVec odd = Bits(And(FromBits(high), FromBits(SetInt(1))));
  const IVec rounded = ShiftRight<16>(AddInt(AddInt(Bits(v), SetInt(0x7fff)), odd));
  const Vec quiet = Or(FromBits(high), FromBits(SetInt(0x40)));
  StoreInt(&p->bits, Bits(Select(IsNan(v), quiet, FromBits(rounded))));
}
#endif

inline void StoreAs(Float16* p, Vec v) { StoreHalf(p, v); }

inline void StoreAs(int32_t* p, Vec v) {
  const Vec largest = FromBits(SetInt(0x7fffffff));
  const Vec in_range = Select(Less(v, Set1(2147483648.f)), FromBits(RoundToInt(v)), largest);
  StoreInt(p, Bits(Select(IsNan(v), Zero(), in_range)));
}

// Rounding after bounds that are integers gives what rounding before does.
inline IVec RoundWithin(Vec v, float low, float high) {
  const Vec within = Max(Min(v, Set1(high)), Set1(low));
  return RoundToInt(Select(IsNan(v), Zero(), within));
}
inline void StoreAs(int8_t* p, Vec v) { StoreInt(p, RoundWithin(v, -128.f, 127.f)); }
inline void StoreAs(uint8_t* p, Vec v) { StoreInt(p, RoundWithin(v, 0.f, 255.f)); }

template <typename T>
inline void StoreAs(T* p, Vec v, Vec w) {
  StoreAs(p, v);
  StoreAs(p + kLanes, w);
}
#if defined(BD_AVX512_BF16) && !defined(BD_EMULATED)
inline void StoreAs(Bfloat16* p, Vec v, Vec w) { StoreBfloat16(p, v, w); }
#endif

}  // namespace
}  // namespace bd::BD_ISA
