// Rows of a transposed convolution. Compiled once per ISA.
#include "cc/core/conv/conv_transpose/conv_transpose_kernel.h"

#include "cc/core/post_ops/post_ops_kernel.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

// Pixels of a row that stay in L1 while the chain passes over them.
constexpr int64_t kTilePixels = 64;

void RunChain(const InterleaveArgs& a, int64_t first, int64_t px) {
  float* const tile = a.dst + first * kBlock;
  a.program->kernels->blocked(*a.program, tile, tile, static_cast<int>(px),
                              a.dst_offset + first * kBlock, a.channel, a.sample_channel,
                              a.valid_lanes);
}

void Wide(const InterleaveArgs& a) {
  for (int64_t x0 = 0; x0 < a.px; x0 += kTilePixels) {
    const int64_t end = x0 + kTilePixels < a.px ? x0 + kTilePixels : a.px;
    int64_t p = x0 % a.phases, t = x0 / a.phases;
    for (int64_t x = x0; x < end; ++x) {
      const float* src = a.phase[p] + t * kBlock;
      float* dst = a.dst + x * kBlock;
      for (int v = 0; v < kBlock; v += kLanes) Store(dst + v, Load(src + v));
      if (++p == a.phases) p = 0, ++t;
    }
    RunChain(a, x0, end - x0);
  }
}

void Narrow(const InterleaveArgs& a) {
  const int64_t step = a.plain ? a.channels : kBlock;
  if (!a.plain) {
    for (int64_t i = 0; i < a.px * kBlock; i += kLanes) Store(a.dst + i, Zero());
  }
  for (int64_t p = 0; p < a.phases; ++p) {
    for (int64_t c = 0; c < a.channels; ++c) {
      const float* src = a.base + a.offsets[p * a.channels + c];
      for (int64_t x = p; x < a.px; x += a.phases, src += a.src_step) a.dst[x * step + c] = *src;
    }
  }
  if (!a.plain) return RunChain(a, 0, a.px);
  const int64_t count = a.px * a.channels;
  a.program->kernels->rows(*a.program, a.dst,
                           {1, count, count, a.dst_offset, 0, 0, a.channels, a.sample_channel});
}

}  // namespace

constexpr ConvTransposeKernels kConvTransposeKernels = {Wide, Narrow};

}  // namespace bd::BD_ISA
