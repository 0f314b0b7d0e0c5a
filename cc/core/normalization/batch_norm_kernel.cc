// Loops over the pixels of a channel block; batch_norm_kernel.h is their contract.
#include "cc/core/normalization/batch_norm_kernel.h"

#include "cc/simd/vec.h"

#define BD_UNROLL _Pragma("GCC unroll 8")

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

void Moments(const float* x, int64_t pixels, const float* first, double (*sums)[16]) {
  SumRuns(pixels, sums, [&](int64_t p, int v, Vec* a, Vec* b) {
    const Vec d = Sub(Load(x + p * kBlock + v * kLanes), Load(first + v * kLanes));
    *a = Add(*a, d);
    *b = Fma(d, d, *b);
  });
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

void Products(const float* x, const float* dy, int64_t pixels, const float* mean,
              double (*sums)[16]) {
  SumRuns(pixels, sums, [&](int64_t p, int v, Vec* a, Vec* b) {
    const int64_t at = p * kBlock + v * kLanes;
    const Vec d = Load(dy + at);
    *a = Add(*a, d);
    *b = Fma(d, Sub(Load(x + at), Load(mean + v * kLanes)), *b);
  });
}

void Gradient(const float* x, const float* dy, int64_t pixels, const float* mean,
              const float* scale, const float* slope, const float* offset, float* dx) {
  for (int v = 0; v < kVecsPerBlock; ++v) {
    const Vec m = Load(mean + v * kLanes), a = Load(scale + v * kLanes);
    const Vec b = Load(slope + v * kLanes), c = Load(offset + v * kLanes);
    for (int64_t p = 0; p < pixels; ++p) {
      const int64_t at = p * kBlock + v * kLanes;
      Store(dx + at, Fma(Load(dy + at), a, Fma(Sub(Load(x + at), m), b, c)));
    }
  }
}

constexpr BatchNormKernels kTable = {Moments, Normalize, Products, Gradient};

}  // namespace

const BatchNormKernels& GetBatchNormKernels() { return kTable; }

}  // namespace bd::BD_ISA
