// Softmax of one row, in three passes; rooms that make rows themselves call it where they are in
// L1.
//
// In IEEE arithmetic as the formula says: a row with a NaN or +inf, or of nothing but -inf, is all
// NaN; elsewhere -inf gives 0.
#pragma once

#include "cc/simd/math/math_exp.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

// Independent chains of maxima and sums: four cover the latency of an addition.
constexpr int kSoftmaxChains = 4;
constexpr float kNothing = -__builtin_inff();  // never the largest, and exp of it is 0

// The first n lanes from memory, kNothing in the others.
inline Vec LoadOrNothing(const float* p, int n) {
  const Vec nothing = Set1(kNothing);
  return Or(LoadN(p, n), Xor(KeepFirst(nothing, n), nothing));
}

// The largest element that is not NaN; a NaN needs no notice, as its exp makes the sum NaN.
inline float Largest(const float* src, int64_t channels) {
  Vec chain[kSoftmaxChains];
#pragma GCC unroll 4
  for (int k = 0; k < kSoftmaxChains; ++k) chain[k] = Set1(kNothing);
  int64_t c = 0;
  for (; c + kSoftmaxChains * kLanes <= channels; c += kSoftmaxChains * kLanes) {
#pragma GCC unroll 4
    for (int k = 0; k < kSoftmaxChains; ++k) chain[k] = Max(Load(src + c + k * kLanes), chain[k]);
  }
  for (; c + kLanes <= channels; c += kLanes) chain[0] = Max(Load(src + c), chain[0]);
  if (c < channels) {
    chain[1] = Max(LoadOrNothing(src + c, static_cast<int>(channels - c)), chain[1]);
  }
  return ReduceMax(Max(Max(chain[0], chain[1]), Max(chain[2], chain[3])));
}

// dst = exp(src - largest); returns the sum.
inline float Exponentials(const float* src, int64_t channels, float largest, float* dst) {
  const Vec shift = Set1(largest);
  Vec chain[kSoftmaxChains];
#pragma GCC unroll 4
  for (int k = 0; k < kSoftmaxChains; ++k) chain[k] = Zero();
  int64_t c = 0;
  for (; c + kSoftmaxChains * kLanes <= channels; c += kSoftmaxChains * kLanes) {
#pragma GCC unroll 4
    for (int k = 0; k < kSoftmaxChains; ++k) {
      const Vec e = NegativeExp(Sub(Load(src + c + k * kLanes), shift));
      Store(dst + c + k * kLanes, e);
      chain[k] = Add(chain[k], e);
    }
  }
  for (; c + kLanes <= channels; c += kLanes) {
    const Vec e = NegativeExp(Sub(Load(src + c), shift));
    Store(dst + c, e);
    chain[0] = Add(chain[0], e);
  }
  if (c < channels) {
    const int tail = static_cast<int>(channels - c);
    const Vec e = NegativeExp(Sub(LoadOrNothing(src + c, tail), shift));
    StoreN(dst + c, e, tail);
    chain[1] = Add(chain[1], e);
  }
  return ReduceAdd(Add(Add(chain[0], chain[1]), Add(chain[2], chain[3])));
}

inline void ScaleRow(const float* src, float factor, int64_t channels, float* dst) {
  const Vec scale = Set1(factor);
  int64_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) Store(dst + c, Mul(Load(src + c), scale));
  const int tail = static_cast<int>(channels - c);
  if (tail > 0) StoreN(dst + c, Mul(LoadN(src + c, tail), scale), tail);
}

// n rows that follow one another, of two vectors at most, which stay in registers: what a masked
// store wrote is read back late. The steps of several rows hide how long each takes.
template <int n>
inline void ShortSoftmaxRows(const float* src, int channels, float* dst) {
  const int first = channels < kLanes ? channels : kLanes, second = channels - first;
  Vec a[n], b[n];
  float factor[n];
#pragma GCC unroll 4
  for (int i = 0; i < n; ++i) {
    a[i] = LoadOrNothing(src + i * channels, first);
    b[i] = LoadOrNothing(src + i * channels + first, second);
  }
#pragma GCC unroll 4
  for (int i = 0; i < n; ++i) {
    const Vec largest = Set1(ReduceMax(Max(b[i], Max(a[i], Set1(kNothing)))));
    a[i] = NegativeExp(Sub(a[i], largest));
    b[i] = NegativeExp(Sub(b[i], largest));
  }
#pragma GCC unroll 4
  for (int i = 0; i < n; ++i) factor[i] = 1.f / ReduceAdd(Add(a[i], b[i]));
#pragma GCC unroll 4
  for (int i = 0; i < n; ++i) {
    StoreN(dst + i * channels, Mul(a[i], Set1(factor[i])), first);
    StoreN(dst + i * channels + first, Mul(b[i], Set1(factor[i])), second);
  }
}

// Of `channels` >= 1 floats; dst may be src.
inline void SoftmaxRow(const float* src, int64_t channels, float* dst) {
  if (channels <= 2 * kLanes) return ShortSoftmaxRows<1>(src, static_cast<int>(channels), dst);
  const float sum = Exponentials(src, channels, Largest(src, channels), dst);
  // The sum is NaN or in [1, channels]: its inverse is no denormal.
  ScaleRow(dst, 1.f / sum, channels, dst);
}

}  // namespace
}  // namespace bd::BD_ISA
