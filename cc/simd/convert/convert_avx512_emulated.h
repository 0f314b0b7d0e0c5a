// The conversions of convert_avx512.h as two of convert_avx2.h. Included by
// cc/simd/convert/convert.h only.
#pragma once

#include "cc/base/data_type.h"
#include "cc/simd/vec.h"

#pragma push_macro("BD_ISA")
#undef BD_ISA
#define BD_ISA halves
namespace bd::BD_ISA {
namespace {
struct ByteBounds {
  bool shifts, bounds;
  IVec zero_point, low, high;
};
}  // namespace
}  // namespace bd::BD_ISA
#include "cc/simd/convert/convert_avx2.h"
#pragma pop_macro("BD_ISA")

namespace bd::BD_ISA {
namespace {

template <typename T>
inline IVec LoadInt(const T* p) {
  return {halves::LoadInt(p), halves::LoadInt(p + kHalf)};
}
template <typename T>
inline void StoreInt(T* p, IVec i) {
  halves::StoreInt(p, i.lo);
  halves::StoreInt(p + kHalf, i.hi);
}

inline void StoreBytes(uint8_t* p, const IVec* i, const ByteBounds& b) {
  const halves::ByteBounds bounds = {b.shifts, b.bounds, b.zero_point.lo, b.low.lo, b.high.lo};
  for (int pair = 0; pair < 2; ++pair, i += 2, p += 4 * kHalf) {
    const halves::IVec parts[] = {i[0].lo, i[0].hi, i[1].lo, i[1].hi};
    halves::StoreBytes(p, parts, bounds);
  }
}

inline IVec RoundToInt(Vec v) { return {halves::RoundToInt(v.lo), halves::RoundToInt(v.hi)}; }

inline Vec FloatFromHalf(const Float16* p) {
  return {halves::FloatFromHalf(p), halves::FloatFromHalf(p + kHalf)};
}
inline void StoreHalf(Float16* p, Vec v) {
  halves::StoreHalf(p, v.lo);
  halves::StoreHalf(p + kHalf, v.hi);
}

}  // namespace
}  // namespace bd::BD_ISA
