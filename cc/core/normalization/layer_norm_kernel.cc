#include "cc/core/normalization/layer_norm_kernel.h"

#include "cc/simd/vec.h"

#define BD_UNROLL _Pragma("GCC unroll 16")

namespace bd::BD_ISA {
namespace {

// Pixels whose sums are in registers at the same time: a block of so many pixels is one piece of
// memory, and their chains of additions are independent.
constexpr int kPixels = 8;

inline int ValidLanes(int64_t channels, int64_t first) {
  const int64_t left = channels - first;
  return static_cast<int>(left < kLanes ? (left < 0 ? 0 : left) : kLanes);
}

inline float InverseDeviation(float squares, float inverse_count, float epsilon) {
  return 1.f / __builtin_sqrtf(squares * inverse_count + epsilon);
}

// The strip stays in L1 between its three passes. Lanes behind the last channel are zero in src, so
// that they need care in the second pass only, and in the third, whose result is zero there even if
// the mean is NaN.
template <int kPx>
void BlockedStrip(const LayerNormArgs& a, const float* src, float* dst) {
  const float inverse_count = 1.f / static_cast<float>(a.channels);
  Vec sum[kPx], mean[kPx], inverse[kPx];
  BD_UNROLL
  for (int p = 0; p < kPx; ++p) sum[p] = Zero();
  const float* block = src;
  for (int64_t c = 0; c < a.channels; c += kBlock, block += a.block_stride) {
    for (int v = 0; v < kVecsPerBlock; ++v) {
      BD_UNROLL
      for (int p = 0; p < kPx; ++p) sum[p] = Add(sum[p], Load(block + p * kBlock + v * kLanes));
    }
  }
  BD_UNROLL
  for (int p = 0; p < kPx; ++p) {
    mean[p] = Set1(ReduceAdd(sum[p]) * inverse_count);
    sum[p] = Zero();
  }
  block = src;
  for (int64_t c = 0; c < a.channels; c += kBlock, block += a.block_stride) {
    for (int v = 0; v < kVecsPerBlock; ++v) {
      const int valid = ValidLanes(a.channels, c + v * kLanes);
      BD_UNROLL
      for (int p = 0; p < kPx; ++p) {
        Vec x = Sub(Load(block + p * kBlock + v * kLanes), mean[p]);
        if (valid < kLanes) x = KeepFirst(x, valid);
        sum[p] = Fma(x, x, sum[p]);
      }
    }
  }
  BD_UNROLL
  for (int p = 0; p < kPx; ++p) {
    inverse[p] = Set1(InverseDeviation(ReduceAdd(sum[p]), inverse_count, a.epsilon));
  }
  block = src;
  for (int64_t c = 0; c < a.channels; c += kBlock, block += a.block_stride, dst += a.block_stride) {
    for (int v = 0; v < kVecsPerBlock; ++v) {
      const int64_t first = c + v * kLanes;
      const int valid = ValidLanes(a.channels, first);
      const Vec gamma = LoadN(a.gamma + (valid > 0 ? first : 0), valid);
      const Vec beta = LoadN(a.beta + (valid > 0 ? first : 0), valid);
      BD_UNROLL
      for (int p = 0; p < kPx; ++p) {
        const int64_t at = p * kBlock + v * kLanes;
        Vec y = Fma(Mul(Sub(Load(block + at), mean[p]), inverse[p]), gamma, beta);
        if (valid < kLanes) y = KeepFirst(y, valid);
        Store(dst + at, y);
      }
    }
  }
}

void Blocked(const LayerNormArgs& a) {
  int64_t p = 0;
  for (; p + kPixels <= a.pixels; p += kPixels) {
    BlockedStrip<kPixels>(a, a.src + p * kBlock, a.dst + p * kBlock);
  }
  for (; p < a.pixels; ++p) BlockedStrip<1>(a, a.src + p * kBlock, a.dst + p * kBlock);
}

void Plain(const LayerNormArgs& a) {
  const int64_t whole = a.channels / kLanes * kLanes;
  const int tail = static_cast<int>(a.channels - whole);
  const float inverse_count = 1.f / static_cast<float>(a.channels);
  const float* src = a.src;
  float* dst = a.dst;
  for (int64_t p = 0; p < a.pixels; ++p, src += a.channels, dst += a.channels) {
    Vec sum = LoadN(src + whole, tail);
    for (int64_t c = 0; c < whole; c += kLanes) sum = Add(sum, Load(src + c));
    const Vec mean = Set1(ReduceAdd(sum) * inverse_count);
    Vec x = KeepFirst(Sub(LoadN(src + whole, tail), mean), tail);
    Vec squares = Mul(x, x);
    for (int64_t c = 0; c < whole; c += kLanes) {
      x = Sub(Load(src + c), mean);
      squares = Fma(x, x, squares);
    }
    const Vec inverse = Set1(InverseDeviation(ReduceAdd(squares), inverse_count, a.epsilon));
    for (int64_t c = 0; c < whole; c += kLanes) {
      x = Mul(Sub(Load(src + c), mean), inverse);
      Store(dst + c, Fma(x, Load(a.gamma + c), Load(a.beta + c)));
    }
    if (tail == 0) continue;
    x = Mul(Sub(LoadN(src + whole, tail), mean), inverse);
    StoreN(dst + whole, Fma(x, LoadN(a.gamma + whole, tail), LoadN(a.beta + whole, tail)), tail);
  }
}

constexpr LayerNormKernels kKernels = {Blocked, Plain};

}  // namespace

const LayerNormKernels& GetLayerNormKernels() { return kKernels; }

}  // namespace bd::BD_ISA
