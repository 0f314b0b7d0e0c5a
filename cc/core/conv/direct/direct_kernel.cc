// What direct convolution needs beside register tiles: the dot form of few output channels, and
// strips. Compiled once per ISA; the contract is direct_kernel.h.
#include "cc/core/conv/direct/direct_kernel.h"

#include "cc/simd/convert/int8.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

template <int kOc>
void DotChannels(const DotArgs& a) {
  constexpr int kPx = 4;
  for (int64_t p0 = 0; p0 < a.px; p0 += kPx) {
    const int px = static_cast<int>(a.px - p0 < kPx ? a.px - p0 : kPx);
    Vec acc[kPx][kOc];
    for (auto& row : acc) {
      for (Vec& x : row) x = Zero();
    }
    for (int64_t t = 0; t < a.taps; ++t) {
      const float* src = a.src + a.tap_offsets[t] + p0 * kBlock;
      const float* w = a.weights + t * kOc * kBlock;
      for (int v = 0; v < kVecsPerBlock; ++v) {
        BD_UNROLL
        for (int p = 0; p < kPx; ++p) {
          const Vec x = Load(src + (p < px ? p : 0) * kBlock + v * kLanes);
          BD_UNROLL
          for (int o = 0; o < kOc; ++o) {
            acc[p][o] = Fma(x, Load(w + o * kBlock + v * kLanes), acc[p][o]);
          }
        }
      }
    }
    for (int p = 0; p < px; ++p) {
      for (int o = 0; o < kOc; ++o) {
        a.dst[(p0 + p) * kOc + o] = ReduceAdd(acc[p][o]) + (a.bias != nullptr ? a.bias[o] : 0.f);
      }
    }
  }
}

void Dot(const DotArgs& a) {
  switch (a.oc) {
    case 1:
      return DotChannels<1>(a);
    case 2:
      return DotChannels<2>(a);
    case 3:
      return DotChannels<3>(a);
    default:
      return DotChannels<4>(a);
  }
}

// Calls copy(pixels [begin, end), the first one of them in src), and zero(p) where there is none.
template <typename Copy, typename Zeros>
BD_INLINE void ForEachPixel(const GatherArgs& a, Copy&& copy, Zeros&& zero) {
  // Pixels [begin, end) have first + p * stride inside [0, size).
  int64_t begin = a.first >= 0 ? 0 : (-a.first + a.stride - 1) / a.stride;
  int64_t end = a.size > a.first ? (a.size - a.first + a.stride - 1) / a.stride : 0;
  if (a.src == nullptr) end = 0;
  if (end > a.px) end = a.px;
  if (begin > end) begin = end;
  for (int64_t p = 0; p < begin; ++p) zero(p);
  if (begin < end) copy(begin, end, a.first + begin * a.stride);
  for (int64_t p = end; p < a.px; ++p) zero(p);
}

template <typename Element>
void Gather(const GatherArgs& all) {
  const GatherArgs a = all;  // which no store changes
  constexpr int64_t kPixel = kBlock * sizeof(Element);
  char* const dst = static_cast<char*>(a.dst);
  const int zero = sizeof(Element) == 1 ? a.zero : 0;
  ForEachPixel(
      a,
      [&](int64_t p, int64_t end, int64_t first) {
        const char* from = static_cast<const char*>(a.src) + first * kPixel;
        if (sizeof(Element) < 4 && a.stride == 1) {
          __builtin_memcpy(dst + p * kPixel, from, (end - p) * kPixel);
          return;
        }
        for (; p < end; ++p, from += a.stride * kPixel) {
          __builtin_memcpy(dst + p * kPixel, from, kPixel);
        }
      },
      [&](int64_t p) { __builtin_memset(dst + p * kPixel, zero, kPixel); });
}

void GatherWords(const GatherArgs& all) {
  const GatherArgs a = all;
  int16_t* const dst = static_cast<int16_t*>(a.dst);
  const int16_t zero = a.zero;
  ForEachPixel(
      a,
      [&](int64_t p, int64_t end, int64_t first) {
        const uint8_t* from = static_cast<const uint8_t*>(a.src) + first * kBlock;
        for (; p < end; ++p, from += a.stride * kBlock) WidenBlock(from, dst + p * kBlock);
      },
      [&](int64_t p) {
        BD_UNROLL
        for (int i = 0; i < kBlock; ++i) dst[p * kBlock + i] = zero;
      });
}

}  // namespace

constexpr DirectKernels kDirectKernels = {
    Dot, {Gather<uint8_t>, Gather<uint16_t>, Gather<float>}, GatherWords};

}  // namespace bd::BD_ISA
