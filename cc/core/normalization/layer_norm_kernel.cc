#include "cc/core/normalization/layer_norm_kernel.h"

#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

// Pixels whose sums are in registers at the same time: a block of so many pixels is one piece of
// memory, and their chains of additions are independent.
constexpr int kPixels = 8;

inline float InverseDeviation(float squares, float inverse_count, float epsilon) {
  return 1.f / __builtin_sqrtf(squares * inverse_count + epsilon);
}

// The sums of the channels of kPx pixels, over the lanes of each.
template <int kPx>
inline void SumChannels(const float* src, int64_t channels, int64_t block_stride,
                        int64_t pixel_stride, Vec* sum) {
  for (int64_t c = 0; c < channels; c += kBlock, src += block_stride) {
    for (int v = 0; v < kVecsPerBlock; ++v) {
      const int valid = AtMostLanes(channels - c - v * kLanes);
      if (valid == 0) break;
      BD_UNROLL
      for (int p = 0; p < kPx; ++p) {
        sum[p] = Add(sum[p], LoadUpTo(src + p * pixel_stride + v * kLanes, valid));
      }
    }
  }
}

// What lies after the last channel of a block: `valid` lanes are stored, and zeros after them
// where they are there.
inline void StoreValid(const LayerNormArgs& a, float* dst, Vec x, int valid) {
  if (valid == kLanes) {
    Store(dst, x);
  } else if (a.blocked) {
    Store(dst, KeepFirst(x, valid));
  } else {
    StoreN(dst, x, valid);
  }
}

// The strip stays in L1 between its three passes. Lanes after the last channel need care in the
// second pass only, and in the third, whose result is zero there even if the mean is NaN.
template <int kPx>
void ForwardStrip(const LayerNormArgs& a, int64_t at) {
  const float inverse_count = 1.f / static_cast<float>(a.channels);
  Vec sum[kPx], mean[kPx], inverse[kPx];
  BD_UNROLL
  for (int p = 0; p < kPx; ++p) sum[p] = Zero();
  const float* src = a.src + at;
  if (a.centered) SumChannels<kPx>(src, a.channels, a.block_stride, a.pixel_stride, sum);
  BD_UNROLL
  for (int p = 0; p < kPx; ++p) {
    mean[p] = Set1(ReduceAdd(sum[p]) * inverse_count);
    sum[p] = Zero();
  }
  for (int64_t c = 0; c < a.channels; c += kBlock, src += a.block_stride) {
    for (int v = 0; v < kVecsPerBlock; ++v) {
      const int valid = AtMostLanes(a.channels - c - v * kLanes);
      if (valid == 0) break;
      BD_UNROLL
      for (int p = 0; p < kPx; ++p) {
        Vec x = Sub(LoadUpTo(src + p * a.pixel_stride + v * kLanes, valid), mean[p]);
        if (valid < kLanes) x = KeepFirst(x, valid);
        sum[p] = Fma(x, x, sum[p]);
      }
    }
  }
  BD_UNROLL
  for (int p = 0; p < kPx; ++p) {
    inverse[p] = Set1(InverseDeviation(ReduceAdd(sum[p]), inverse_count, a.epsilon));
  }
  src = a.src + at;
  float* dst = a.dst + at;
  for (int64_t c = 0; c < a.channels; c += kBlock, src += a.block_stride, dst += a.block_stride) {
    for (int v = 0; v < kVecsPerBlock; ++v) {
      const int64_t first = c + v * kLanes;
      const int valid = AtMostLanes(a.channels - first);
      if (valid == 0 && !a.blocked) break;
      const Vec gamma = LoadUpTo(a.gamma + (valid > 0 ? first : 0), valid);
      const Vec beta = LoadUpTo(a.beta + (valid > 0 ? first : 0), valid);
      BD_UNROLL
      for (int p = 0; p < kPx; ++p) {
        const int64_t lane = p * a.pixel_stride + v * kLanes;
        const Vec x = Mul(Sub(LoadUpTo(src + lane, valid), mean[p]), inverse[p]);
        StoreValid(a, dst + lane, Fma(x, gamma, beta), valid);
      }
    }
  }
}

// Forward and backward of a pixel have sums over channels of their own; half as many pixels at a
// time leave registers for all of them.
constexpr int kGradPixels = 4;

// With x' = src - mean, i = 1 / sqrt(variance + epsilon) and g = ddst gamma:
//   dsrc = i (g - sum g / C - x' i^2 sum g x' / C).
template <int kPx>
void BackwardStrip(const LayerNormArgs& a, int64_t at) {
  const float inverse_count = 1.f / static_cast<float>(a.channels);
  Vec mean[kPx], squares[kPx], sum[kPx], product[kPx];
  BD_UNROLL
  for (int p = 0; p < kPx; ++p) sum[p] = Zero();
  const float* src = a.src + at;
  if (a.centered) SumChannels<kPx>(src, a.channels, a.block_stride, a.pixel_stride, sum);
  BD_UNROLL
  for (int p = 0; p < kPx; ++p) {
    mean[p] = Set1(ReduceAdd(sum[p]) * inverse_count);
    squares[p] = sum[p] = product[p] = Zero();
  }
  src = a.src + at;
  const float* ddst = a.ddst + at;
  for (int64_t c = 0; c < a.channels; c += kBlock, src += a.block_stride, ddst += a.block_stride) {
    for (int v = 0; v < kVecsPerBlock; ++v) {
      const int64_t first = c + v * kLanes;
      const int valid = AtMostLanes(a.channels - first);
      if (valid == 0) break;
      const Vec gamma = LoadUpTo(a.gamma + first, valid);
      BD_UNROLL
      for (int p = 0; p < kPx; ++p) {
        const int64_t lane = p * a.pixel_stride + v * kLanes;
        Vec x = Sub(LoadUpTo(src + lane, valid), mean[p]);
        if (valid < kLanes) x = KeepFirst(x, valid);
        const Vec g = Mul(LoadUpTo(ddst + lane, valid), gamma);
        squares[p] = Fma(x, x, squares[p]);
        sum[p] = Add(sum[p], g);
        product[p] = Fma(g, x, product[p]);
      }
    }
  }
  Vec inverse[kPx], offset[kPx], slope[kPx];
  BD_UNROLL
  for (int p = 0; p < kPx; ++p) {
    const float i = InverseDeviation(ReduceAdd(squares[p]), inverse_count, a.epsilon);
    inverse[p] = Set1(i);
    offset[p] = a.centered ? Set1(i * ReduceAdd(sum[p]) * inverse_count) : Zero();
    slope[p] = Set1(i * i * i * ReduceAdd(product[p]) * inverse_count);
  }
  src = a.src + at;
  ddst = a.ddst + at;
  float* dsrc = a.dsrc + at;
  for (int64_t c = 0; c < a.channels; c += kBlock) {
    for (int v = 0; v < kVecsPerBlock; ++v) {
      const int64_t first = c + v * kLanes;
      const int valid = AtMostLanes(a.channels - first);
      if (valid == 0 && !a.blocked) break;
      const Vec gamma = LoadUpTo(a.gamma + (valid > 0 ? first : 0), valid);
      Vec dgamma = Load(a.dgamma + first), dbeta = Load(a.dbeta + first);
      BD_UNROLL
      for (int p = 0; p < kPx; ++p) {
        const int64_t lane = p * a.pixel_stride + v * kLanes;
        const Vec x = Sub(LoadUpTo(src + lane, valid), mean[p]);
        const Vec dy = LoadUpTo(ddst + lane, valid);
        dbeta = Add(dbeta, dy);
        dgamma = Fma(dy, Mul(x, inverse[p]), dgamma);
        const Vec g = Sub(Mul(Mul(dy, gamma), inverse[p]), offset[p]);
        StoreValid(a, dsrc + lane, NegFma(x, slope[p], g), valid);
      }
      Store(a.dgamma + first, dgamma);
      Store(a.dbeta + first, dbeta);
    }
    src += a.block_stride;
    ddst += a.block_stride;
    dsrc += a.block_stride;
  }
}

template <int kPx, void (*kStrip)(const LayerNormArgs&, int64_t),
          void (*kOne)(const LayerNormArgs&, int64_t)>
void Strips(const LayerNormArgs& a) {
  int64_t p = 0;
  for (; p + kPx <= a.pixels; p += kPx) kStrip(a, p * a.pixel_stride);
  for (; p < a.pixels; ++p) kOne(a, p * a.pixel_stride);
}

}  // namespace

constexpr LayerNormKernels kLayerNormKernels = {
    Strips<kPixels, ForwardStrip<kPixels>, ForwardStrip<1>>,
    Strips<kGradPixels, BackwardStrip<kGradPixels>, BackwardStrip<1>>};

}  // namespace bd::BD_ISA
