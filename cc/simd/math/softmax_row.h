// Softmax of one row, in three passes; rooms that make rows themselves call it where they are in
// L1.
//
// Lanes that are no channels are 0, not -inf, under the exponential, and are zeroed after it: an
// exponential that underflows costs up to 100 cycles.
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
    const Vec e = NegativeExp(KeepFirst(Sub(LoadN(src + c, tail), shift), tail));
    StoreN(dst + c, e, tail);
    chain[1] = Add(chain[1], KeepFirst(e, tail));
  }
  return ReduceAdd(Add(Add(chain[0], chain[1]), Add(chain[2], chain[3])));
}

inline void ScaleRow(const float* src, float factor, int64_t channels, float* dst) {
  const Vec scale = Set1(factor);
  Map(
      dst, channels, [=](Vec x) { return Mul(x, scale); }, src);
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
    a[i] = KeepFirst(NegativeExp(KeepFirst(Sub(a[i], largest), first)), first);
    b[i] = KeepFirst(NegativeExp(KeepFirst(Sub(b[i], largest), second)), second);
  }
#pragma GCC unroll 4
  for (int i = 0; i < n; ++i) factor[i] = 1.f / ReduceAdd(Add(a[i], b[i]));
#pragma GCC unroll 4
  for (int i = 0; i < n; ++i) {
    StoreN(dst + i * channels, Mul(a[i], Set1(factor[i])), first);
    StoreN(dst + i * channels + first, Mul(b[i], Set1(factor[i])), second);
  }
}

// Rows of 4 to 4 kMaxQuads channels, kLanes / 4 at a time: quad i of each vector is of row i, so
// that all lanes count, and one step takes maxima or sums of all rows. Longer rows gain nothing.
constexpr int kMaxQuads = 25;
inline void QuadSoftmaxRows(const float* src, int64_t rows, int64_t channels, float* dst) {
  // The last quad ends with its row. Channels that the quad before it has as well do not count.
  static constexpr float kCounts[] = {0.f, 0.f, 0.f, 1.f, 1.f, 1.f, 1.f};
  const int64_t last = (channels - 1) / 4, tail = channels - 4;
  const Vec counts = LoadQuads(kCounts + 3 - (4 * last - tail), 0);
  for (int64_t row = 0, step; row < rows; row += step) {
    step = row + kLanes / 4 <= rows ? kLanes / 4 : 1;
    const int64_t stride = step == 1 ? 0 : channels;  // one row in all quads
    Vec e[kMaxQuads];
    e[last] = LoadQuads(src + tail, stride);
    Vec largest = e[last];
    for (int64_t q = 0; q < last; ++q) {
      e[q] = LoadQuads(src + 4 * q, stride);
      largest = Max(e[q], largest);
    }
    largest = Max(SwapPairs(largest), largest);
    largest = Max(SwapNeighbours(largest), largest);
    e[last] = NegativeExp(Sub(e[last], largest));
    Vec sum = Mul(e[last], counts);
    for (int64_t q = 0; q < last;) {
      const int64_t end = q + 8 < last ? q + 8 : last;  // chains of 8 keep sums exact enough
      Vec part = Zero();
      for (; q < end; ++q) {
        e[q] = NegativeExp(Sub(e[q], largest));
        part = Add(part, e[q]);
      }
      sum = Add(sum, part);
    }
    sum = Add(SwapPairs(sum), sum);
    const Vec factor = Div(Set1(1.f), Add(SwapNeighbours(sum), sum));
    StoreQuads(dst + tail, stride, Mul(e[last], factor));
    for (int64_t q = 0; q < last; ++q) StoreQuads(dst + 4 * q, stride, Mul(e[q], factor));
    src += step * channels;
    dst += step * channels;
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
