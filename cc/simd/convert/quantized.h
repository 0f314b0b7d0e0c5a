// Loads and stores of the numbers that stored ones stand for (cc/base/quantization.h), on top of
// convert.h. Each is the same for all types, so that a kernel is one template:
//
//   const Dequantizer from(quantization);    Vec x = from.Load(p);   x = from.LoadN(p, n);
//   const Quantizer to(quantization);        to.Store(p, x);         to.StoreN(p, x, n);
//                                            to.StoreBlock(p, x);    16 numbers of vectors x[]
//                                            to.StoreBlockOfSteps(p, x);  to uint8, of steps
//                                            to.StoreFour(p, x);     those of 4 vectors x[]
//                                            to.StoreSteps(p, x);    to uint8, the same of steps
//                                                                    of dst, |x| below 2^30
//
// where p is of any data type. All but uint8 and int8 stand for themselves. The results do not
// depend on the instruction set.
#pragma once

#include "cc/base/quantization.h"
#include "cc/simd/convert/convert.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

// The first n lanes, 0 <= n <= kLanes, and zeros; no memory beyond them is touched.
template <typename T>
inline Vec LoadAsN(const T* p, int n) {
  if (n == kLanes) return LoadAs(p);
  T some[kLanes] = {};
  for (int i = 0; i < n; ++i) some[i] = p[i];
  return LoadAs(some);
}
inline Vec LoadAsN(const float* p, int n) { return LoadN(p, n); }

class Dequantizer {
 public:
  explicit Dequantizer(const Quantization& from)
      : scale_(Set1(from.scale)), zero_point_(Set1(static_cast<float>(from.zero_point))) {}

  template <typename T>
  BD_INLINE Vec Load(const T* p) const {
    return Real(p, LoadAs(p));
  }
  template <typename T>
  BD_INLINE Vec LoadN(const T* p, int n) const {
    return Real(p, LoadAsN(p, n));
  }

 private:
  template <typename T>
  static Vec Real(const T*, Vec v) {
    return v;
  }
  Vec Real(const uint8_t*, Vec v) const { return Mul(scale_, Sub(v, zero_point_)); }
  Vec Real(const int8_t*, Vec v) const { return Mul(scale_, Sub(v, zero_point_)); }

  Vec scale_, zero_point_;
};

// Rounding comes before the zero point, to which NaN becomes.
class Quantizer {
 public:
  explicit Quantizer(const Quantization& to) : Quantizer(to, -__builtin_inff(), __builtin_inff()) {}
  // To bytes, of numbers between lo and hi: others become these first. Products by the inverse
  // ascend with what is multiplied, so that bounds may be, too.
  Quantizer(const Quantization& to, float lo, float hi)
      : inverse_(Set1(1.f / to.scale)), zero_point_(to.zero_point) {
    lo = Finite(lo) ? lo * (1.f / to.scale) : lo;
    hi = Finite(hi) ? hi * (1.f / to.scale) : hi;
    unsigned_ = Bounds(lo, hi, 0 - zero_point_, 255 - zero_point_);
    signed_ = Bounds(lo, hi, -128 - zero_point_, 127 - zero_point_);
    small_ = ByteBounds(zero_point_, zero_point_ + Nearest(unsigned_.low),
                        zero_point_ + Nearest(unsigned_.high));
  }

  template <typename T>
  BD_INLINE void Store(T* p, Vec v) const {
    StoreAs(p, v);
  }
  BD_INLINE void Store(uint8_t* p, Vec v) const { StoreInt(p, Rounded(v, unsigned_)); }
  BD_INLINE void Store(int8_t* p, Vec v) const { StoreInt(p, Rounded(v, signed_)); }

  template <typename T>
  BD_INLINE void StoreBlock(T* p, const Vec* v) const {
#pragma GCC unroll 4
    for (int i = 0; i < kVecsPerBlock; ++i) Store(p + i * kLanes, v[i]);
  }
  BD_INLINE void StoreBlock(uint8_t* p, const Vec* v) const {
    Vec steps[kVecsPerBlock];
#pragma GCC unroll 4
    for (int i = 0; i < kVecsPerBlock; ++i) steps[i] = Mul(v[i], inverse_);
    StoreBlockOfSteps(p, steps);
  }
  BD_INLINE void StoreBlockOfSteps(uint8_t* p, const Vec* v) const {
#if defined(__AVX2__) && !defined(BD_AVX512)
    StoreIntBlock(p, RoundedSteps(v[0], unsigned_), RoundedSteps(v[1], unsigned_));
#else
#pragma GCC unroll 4
    for (int i = 0; i < kVecsPerBlock; ++i) StoreInt(p + i * kLanes, RoundedSteps(v[i], unsigned_));
#endif
  }

  template <typename T>
  BD_INLINE void StoreFour(T* p, const Vec* v) const {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) Store(p + i * kLanes, v[i]);
  }
  BD_INLINE void StoreFour(Bfloat16* p, const Vec* v) const {
    StoreAs(p, v[0], v[1]);
    StoreAs(p + 2 * kLanes, v[2], v[3]);
  }
  BD_INLINE void StoreFour(uint8_t* p, const Vec* v) const {
    IVec steps[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      steps[i] = RoundWithin(Mul(v[i], inverse_), unsigned_.low, unsigned_.high);
    }
    StoreBytes(p, steps, ByteBounds(zero_point_, 0, 255));
  }

  // Of steps that are int32 when rounded, so that bounds may come after.
  BD_INLINE void StoreSteps(uint8_t* p, const Vec* v) const {
    IVec steps[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) steps[i] = RoundToInt(v[i]);
    StoreBytes(p, steps, small_);
  }

  template <typename T>
  BD_INLINE void StoreN(T* p, Vec v, int n) const {
    if (n == kLanes) return Store(p, v);
    T some[kLanes];
    Store(some, v);
    for (int i = 0; i < n; ++i) p[i] = some[i];
  }

 private:
  // Bounds of bytes are integers, and rounding ascends, so that all of them may come before it.
  struct Bounds {
    Bounds() = default;
    Bounds(float lo, float hi, int32_t least, int32_t most)
        : low(Between(lo, static_cast<float>(least), static_cast<float>(most))),
          high(Between(hi, static_cast<float>(least), static_cast<float>(most))) {}
    float low, high;
  };
  IVec Rounded(Vec v, const Bounds& within) const { return RoundedSteps(Mul(v, inverse_), within); }
  IVec RoundedSteps(Vec v, const Bounds& within) const {
    return AddInt(RoundWithin(v, within.low, within.high), SetInt(zero_point_));
  }
  static int32_t Nearest(float x) { return _mm_cvtss_si32(_mm_set_ss(x)); }
  static bool Finite(float x) { return x - x == 0; }
  static float Between(float x, float least, float most) {
    return x < least ? least : x > most ? most : x;
  }

  Vec inverse_;
  Bounds unsigned_, signed_;
  ByteBounds small_;
  int32_t zero_point_;
};

}  // namespace
}  // namespace bd::BD_ISA
