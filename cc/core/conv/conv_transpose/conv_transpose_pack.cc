// Weights [kh, kw, oc, ic] -> those of the phases, packed.
#include <algorithm>
#include <vector>

#include "cc/core/conv/conv_transpose/conv_transpose.h"
#include "cc/core/gemm/gemm_panels.h"

namespace bd {
namespace {

// The tap of an axis with which phase q reads the pixel `offset` from its own, or -1.
int64_t TapAt(int64_t kernel, int64_t stride, int64_t pad, int64_t phase, int64_t offset) {
  const int64_t tap = (phase + pad) - offset * stride;
  return tap >= 0 && tap < kernel ? tap : -1;
}

// HWIO of a part.
void Expand(const ConvTransposeDesc& d, const PhaseConv& part, const float* weights, float* hwio,
            ThreadPool& pool) {
  const ConvDesc& c = part.conv.desc;
  pool.ParallelFor(c.kh() * c.kw() * c.ic(), [&](int64_t row, int) {
    const int64_t i = row % c.ic(), tap = row / c.ic();
    float* out = hwio + row * c.oc();
    std::fill_n(out, c.oc(), 0.f);
    for (int64_t p = part.first_phase; p < part.first_phase + part.phases; ++p) {
      const int64_t kh = TapAt(d.kh, d.sh, d.pad_top, p / d.sw, part.h.first + tap / c.kw());
      const int64_t kw = TapAt(d.kw, d.sw, d.pad_left, p % d.sw, part.w.first + tap % c.kw());
      if (kh < 0 || kw < 0) continue;
      const float* from = weights + (kh * d.kw + kw) * d.oc() * d.ic() + i;
      float* to = out + (p - part.first_phase) * part.stride;
      for (int64_t o = 0; o < d.oc(); ++o) to[o] = from[o * d.ic()];
    }
  });
}

}  // namespace

void PackConvTransposeWeights(const ConvTransposePlan& plan, const float* weights, float* packed,
                              ThreadPool& pool, const float* src) {
  std::vector<float> hwio;
  for (const PhaseConv& part : plan.convs) {
    if (part.is_zero()) continue;
    const ConvDesc& c = part.conv.desc;
    hwio.resize(c.kh() * c.kw() * c.ic() * c.oc());
    Expand(plan.desc, part, weights, hwio.data(), pool);
    PackConvWeights(part.conv, hwio.data(), packed + part.packed, pool, src);
  }
}

}  // namespace bd
