// Folds the pixels of a plane of 16-channel blocks into one value a channel; included
// by per-ISA kernels only.
#pragma once

#include <cstdint>

#include "cc/simd/convert/convert.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

struct MaxOp {
  static Vec Identity() { return Set1(-__builtin_inff()); }
  static Vec Combine(Vec a, Vec b) { return MaxOrNan(a, b); }
  static Vec Finish(Vec v, Vec) { return v; }
};

struct AvgOp {
  static Vec Identity() { return Zero(); }
  static Vec Combine(Vec a, Vec b) { return Add(a, b); }
  static Vec Finish(Vec v, Vec count) { return Div(v, count); }
};

// Folds src [pixels][16] and stores the first `lanes` channels. The plane is one run
// of vectors: chain i takes vectors i, i + kChains, ... and holds the lanes of vector
// i % kVecsPerBlock of a pixel.
template <typename Op, typename Src>
inline void FoldPlane(const Src* src, int64_t pixels, float* dst, int lanes) {
  constexpr int kChains = 8;  // hides the latency of an addition
  constexpr int kPixels = kChains / kVecsPerBlock;
  Vec chain[kChains];
#pragma GCC unroll 8
  for (int i = 0; i < kChains; ++i) chain[i] = Op::Identity();
  int64_t p = 0;
  for (; p + kPixels <= pixels; p += kPixels, src += kPixels * kBlock) {
#pragma GCC unroll 8
    for (int i = 0; i < kChains; ++i) chain[i] = Op::Combine(chain[i], LoadAs(src + i * kLanes));
  }
  for (; p < pixels; ++p, src += kBlock) {
#pragma GCC unroll 4
    for (int v = 0; v < kVecsPerBlock; ++v) {
      chain[v] = Op::Combine(chain[v], LoadAs(src + v * kLanes));
    }
  }
  const Vec count = Set1(static_cast<float>(pixels));
#pragma GCC unroll 4
  for (int v = 0; v < kVecsPerBlock; ++v) {
#pragma GCC unroll 8
    for (int i = v + kVecsPerBlock; i < kChains; i += kVecsPerBlock) {
      chain[v] = Op::Combine(chain[v], chain[i]);
    }
    StoreN(dst + v * kLanes, Op::Finish(chain[v], count), AtMostLanes(lanes - v * kLanes));
  }
}

}  // namespace
}  // namespace bd::BD_ISA
