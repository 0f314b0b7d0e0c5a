// What convolution needs beside register tiles: the dot form of few output channels, strips and
// plain results. Compiled once per ISA; the contract is conv_kernel.h.
#include "cc/core/conv/conv_kernel.h"

#include "cc/core/post_ops/post_ops_inl.h"
#include "cc/simd/vec.h"

#define BD_UNROLL _Pragma("GCC unroll 32")

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

inline void CopyBlock(float* dst, const float* src) {
  BD_UNROLL
  for (int v = 0; v < kVecsPerBlock; ++v) Store(dst + v * kLanes, Load(src + v * kLanes));
}

inline void ZeroBlock(float* dst) {
  BD_UNROLL
  for (int v = 0; v < kVecsPerBlock; ++v) Store(dst + v * kLanes, Zero());
}

void Gather(const GatherArgs& a) {
  // Pixels [begin, end) have first + p * stride inside [0, size).
  int64_t begin = a.first >= 0 ? 0 : (-a.first + a.stride - 1) / a.stride;
  int64_t end = a.size > a.first ? (a.size - a.first + a.stride - 1) / a.stride : 0;
  if (a.src == nullptr) end = 0;
  if (end > a.px) end = a.px;
  if (begin > end) begin = end;
  int64_t p = 0;
  for (; p < begin; ++p) ZeroBlock(a.dst + p * kBlock);
  for (; p < end; ++p) {
    CopyBlock(a.dst + p * kBlock, a.src + (a.first + p * a.stride) * kBlock);
  }
  for (; p < a.px; ++p) ZeroBlock(a.dst + p * kBlock);
}

void PlainStore(const PlainStoreArgs& a) {
  for (int64_t c = 0; a.blocks != nullptr && c < a.count; c += kBlock) {
    const int64_t lanes = a.count - c < kBlock ? a.count - c : kBlock;
    const float* block = a.blocks + c * a.px;
    for (int64_t p = 0; p < a.px; ++p) {
      float* out = a.row + p * a.count + c;
      for (int64_t i = 0; i < lanes; ++i) out[i] = block[p * kBlock + i];
    }
  }
  // All channels: the pixels are one run. Some of them: a run a pixel.
  const int64_t runs = a.count == a.channels ? 1 : a.px;
  const int64_t length = a.px * a.count / runs;
  for (int64_t r = 0; r < runs; ++r) {
    float* row = a.row + r * length;
    const int64_t at = r * a.channels + a.first;
    if (a.program != nullptr) {
      ApplyPostOpsPlain(*a.program, row, length, a.dst_offset + at, a.first, a.channels,
                        a.sample_offset);
    }
    __builtin_memcpy(a.dst + at, row, static_cast<size_t>(length) * sizeof(float));
  }
}

constexpr ConvKernels kTable = {Dot, Gather, PlainStore};

}  // namespace

const ConvKernels& GetConvKernels() { return kTable; }

}  // namespace bd::BD_ISA
