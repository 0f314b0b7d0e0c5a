// Loops over the pixels of a channel block; batch_norm_kernel.h is their contract.
#include "cc/core/normalization/batch_norm_kernel.h"

#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

constexpr int64_t kRun = 512;  // pixels summed in float
constexpr int kSums = 4;       // at a time, so that they outlast an addition's latency

// Calls term(pixel, vector, &sums of two) for each vector of a pixel, and adds up.
template <typename Term>
inline void SumRuns(int64_t pixels, double (*sums)[16], Term&& term) {
  for (int64_t begin = 0; begin < pixels; begin += kRun) {
    const int64_t end = begin + kRun < pixels ? begin + kRun : pixels;
    for (int v = 0; v < kVecsPerBlock; ++v) {
      Vec a[kSums], b[kSums];
      BD_UNROLL
      for (int i = 0; i < kSums; ++i) a[i] = b[i] = Zero();
      int64_t p = begin;
      for (; p + kSums <= end; p += kSums) {
        BD_UNROLL
        for (int i = 0; i < kSums; ++i) term(p + i, v, &a[i], &b[i]);
      }
      for (; p < end; ++p) term(p, v, &a[0], &b[0]);
      alignas(64) float lanes[2][kLanes];
      Store(lanes[0], Add(Add(a[0], a[1]), Add(a[2], a[3])));
      Store(lanes[1], Add(Add(b[0], b[1]), Add(b[2], b[3])));
      for (int i = 0; i < kLanes; ++i) {
        sums[0][v * kLanes + i] += lanes[0][i];
        sums[1][v * kLanes + i] += lanes[1][i];
      }
    }
  }
}

// In double, where differences of floats are exact: how far the first pixel lies from the mean
// costs a variance no digit. The loops over 16 channels are the compiler's to make vectors of; the
// pass waits for memory.
void Moments(const float* x, int64_t pixels, const float* first, double (*sums)[16]) {
  double a[kBlock] = {}, b[kBlock] = {};
  for (int64_t p = 0; p < pixels; ++p) {
    for (int i = 0; i < kBlock; ++i) {
      const double d = double{x[p * kBlock + i]} - first[i];
      a[i] += d;
      b[i] += d * d;
    }
  }
  for (int i = 0; i < kBlock; ++i) {
    sums[0][i] += a[i];
    sums[1][i] += b[i];
  }
}

void Normalize(const float* x, int64_t pixels, const float* scale, const float* shift, float* y) {
  Vec a[kVecsPerBlock], b[kVecsPerBlock];
  for (int v = 0; v < kVecsPerBlock; ++v) {
    a[v] = Load(scale + v * kLanes);
    b[v] = Load(shift + v * kLanes);
  }
  for (int64_t p = 0; p < pixels; ++p) {
    BD_UNROLL
    for (int v = 0; v < kVecsPerBlock; ++v) {
      const int64_t at = p * kBlock + v * kLanes;
      Store(y + at, Fma(Load(x + at), a[v], b[v]));
    }
  }
}

template <BatchNormClamp kClamp>
inline Vec Passed(Vec dy, Vec x, Vec scale, Vec shift) {
  if constexpr (kClamp == BatchNormClamp::kNone) return dy;
  const Vec y = Fma(x, scale, shift);
  const Vec passed = Select(Less(Zero(), y), dy, Zero());
  if constexpr (kClamp == BatchNormClamp::kRelu) return passed;
  return Select(Less(y, Set1(6.f)), passed, Zero());
}

template <BatchNormClamp kClamp>
void Products(const float* x, const float* dy, int64_t pixels, const float* mean,
              const float* y_scale, const float* y_shift, double (*sums)[16]) {
  SumRuns(pixels, sums, [&](int64_t p, int v, Vec* a, Vec* b) {
    const int64_t at = p * kBlock + v * kLanes;
    const Vec value = Load(x + at);
    const Vec d = Passed<kClamp>(Load(dy + at), value, Load(y_scale + v * kLanes),
                                 Load(y_shift + v * kLanes));
    *a = Add(*a, d);
    *b = Fma(d, Sub(value, Load(mean + v * kLanes)), *b);
  });
}

template <BatchNormClamp kClamp>
void Gradient(const float* x, const float* dy, int64_t pixels, const float* mean,
              const float* scale, const float* slope, const float* offset, const float* y_shift,
              float* dx) {
  for (int v = 0; v < kVecsPerBlock; ++v) {
    const Vec m = Load(mean + v * kLanes), a = Load(scale + v * kLanes);
    const Vec b = Load(slope + v * kLanes), c = Load(offset + v * kLanes);
    const Vec shift = Load(y_shift + v * kLanes);
    for (int64_t p = 0; p < pixels; ++p) {
      const int64_t at = p * kBlock + v * kLanes;
      const Vec value = Load(x + at);
      const Vec d = Passed<kClamp>(Load(dy + at), value, a, shift);
      Store(dx + at, Fma(d, a, Fma(Sub(value, m), b, c)));
    }
  }
}

constexpr BatchNormClamp kNone = BatchNormClamp::kNone, kRelu = BatchNormClamp::kRelu,
                         kRelu6 = BatchNormClamp::kRelu6;

}  // namespace

constexpr BatchNormKernels kBatchNormKernels = {
    Moments,
    Normalize,
    {Products<kNone>, Products<kRelu>, Products<kRelu6>},
    {Gradient<kNone>, Gradient<kRelu>, Gradient<kRelu6>}};

}  // namespace bd::BD_ISA
