// Loads and stores of the numbers that stored ones stand for (cc/base/quantization.h), on top of
// convert.h. Each is the same for all types, so that a kernel is one template:
//
//   const Dequantizer from(quantization);    Vec x = from.Load(p);   x = from.LoadN(p, n);
//   const Quantizer to(quantization);        to.Store(p, x);         to.StoreN(p, x, n);
//
// where p is a float*, Bfloat16*, Float16*, int32_t*, uint8_t* or int8_t*. Floats and int32 stand
// for themselves. The results do not depend on the instruction set.
#ifndef CC_SIMD_CONVERT_QUANTIZED_H_
#define CC_SIMD_CONVERT_QUANTIZED_H_

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
  inline __attribute__((always_inline)) Vec Load(const T* p) const {
    return Real(p, LoadAs(p));
  }
  template <typename T>
  inline __attribute__((always_inline)) Vec LoadN(const T* p, int n) const {
    return Real(p, LoadAsN(p, n));
  }

 private:
  static Vec Real(const float*, Vec v) { return v; }
  static Vec Real(const Bfloat16*, Vec v) { return v; }
  static Vec Real(const Float16*, Vec v) { return v; }
  static Vec Real(const int32_t*, Vec v) { return v; }
  template <typename T>
  Vec Real(const T*, Vec v) const {
    return Mul(scale_, Sub(v, zero_point_));
  }

  Vec scale_, zero_point_;
};

// Rounding comes before the zero point, to which NaN becomes.
class Quantizer {
 public:
  explicit Quantizer(const Quantization& to)
      : inverse_(Set1(1.f / to.scale)), zero_point_(to.zero_point) {}

  inline __attribute__((always_inline)) void Store(float* p, Vec v) const { StoreAs(p, v); }
  inline __attribute__((always_inline)) void Store(Bfloat16* p, Vec v) const { StoreAs(p, v); }
  inline __attribute__((always_inline)) void Store(Float16* p, Vec v) const { StoreAs(p, v); }
  inline __attribute__((always_inline)) void Store(int32_t* p, Vec v) const { StoreAs(p, v); }
  inline __attribute__((always_inline)) void Store(uint8_t* p, Vec v) const {
    StoreInt(p, Rounded(v, 0, 255));
  }
  inline __attribute__((always_inline)) void Store(int8_t* p, Vec v) const {
    StoreInt(p, Rounded(v, -128, 127));
  }

  template <typename T>
  inline __attribute__((always_inline)) void StoreN(T* p, Vec v, int n) const {
    if (n == kLanes) return Store(p, v);
    T some[kLanes];
    Store(some, v);
    for (int i = 0; i < n; ++i) p[i] = some[i];
  }

 private:
  // The bounds are integers, so they may come before rounding.
  IVec Rounded(Vec v, int low, int high) const {
    const float least = static_cast<float>(low - zero_point_);
    const float most = static_cast<float>(high - zero_point_);
    return AddInt(RoundWithin(Mul(v, inverse_), least, most), SetInt(zero_point_));
  }

  Vec inverse_;
  int32_t zero_point_;
};

}  // namespace
}  // namespace bd::BD_ISA

#endif  // CC_SIMD_CONVERT_QUANTIZED_H_
