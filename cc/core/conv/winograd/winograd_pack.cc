// Weights into Winograd's domain; the matrices are in winograd_kernel.h.
#include <algorithm>
#include <vector>

#include "cc/core/conv/winograd/winograd.h"
#include "cc/core/conv/winograd/winograd_weights_kernel.h"
#include "cc/core/gemm/fip.h"
#include "cc/core/gemm/narrow_pack.h"

namespace bd {
namespace {

constexpr bool FitsKernels() {
  for (const WinogradTransform& t : kWinogradTransforms) {
    if (t.alpha_h() > kMaxAlpha || t.alpha_w() > kMaxAlpha) return false;
    if (t.taps_h() > kMaxTaps || t.taps_w() > kMaxTaps) return false;
  }
  return true;
}
static_assert(FitsKernels(), "kMaxAlpha and kMaxTaps bound kWinogradTransforms");

constexpr int64_t kTaskFloats = 32 << 10;  // packed weights worth a task

WinogradAxis MakeAxis(int m, int r) {
  WinogradAxis axis = {r, m + r - 1, {}};
  const WinogradPoints half = WinogradPointsOf(axis.alpha);
  double p[kMaxAlpha];
  int count = 0;
  if (half.zero) p[count++] = 0.;
  for (int j = 0; j < half.pairs; ++j) {
    p[count++] = half.p[j];
    p[count++] = -half.p[j];
  }
  for (int i = 0; i < count; ++i) {
    double denominator = 1.;
    for (int j = 0; j < count; ++j) denominator *= j == i ? 1. : p[i] - p[j];
    double power = 1.;
    for (int k = 0; k < axis.taps; ++k, power *= p[i]) axis.g[i][k] = power / denominator;
  }
  axis.g[axis.alpha - 1][axis.taps - 1] = 1.;
  return axis;
}

}  // namespace

void PackWinograd(const ConvPlan& plan, const float* hwio, float* packed, ThreadPool& pool,
                  const float*) {
  const WinogradPlan& p = plan.Own<WinogradPlan>();
  const ConvDesc& d = plan.desc;
  std::vector<float> widened;
  if (d.narrow()) {
    widened.resize(d.kh() * d.kw() * d.ic() * d.oc());
    for (size_t i = 0; i < widened.size(); ++i)
      widened[i] = PackedBfloat16(d.types.weights, hwio, static_cast<int64_t>(i));
    hwio = widened.data();
  }
  const WinogradTransform& t = p.transform();
  const WinogradAxis h = MakeAxis(t.mh, t.taps_h()), w = MakeAxis(t.mw, t.taps_w());
  const WinogradWeightsKernels& kernels = WinogradWeightsKernelsFor(plan.isa);
  const int64_t planes = t.planes(), channels = d.ic() * t.phases();
  const int64_t plane_floats = plan.packed_floats() / planes;
  const int64_t groups = p.groups.size();
  const int64_t most =
      std::max<int64_t>(1, plan.packed_floats() / std::max<int64_t>(1, groups) / kTaskFloats);
  const int64_t splits = std::min(most, channels);  // of a group's source channels
  pool.ParallelFor(groups * splits, [&](int64_t task, int) {
    const OutputGroup& g = p.groups[task / splits];
    const int64_t lanes = g.blocks * kBlock, split = task % splits;
    WinogradWeightsArgs a;
    const float* taps[kMaxTaps * kMaxTaps];
    a.h = &h;
    a.w = &w;
    a.taps = taps;
    a.plane_stride = plane_floats;
    for (int64_t c = channels * split / splits; c < channels * (split + 1) / splits; ++c) {
      const int64_t y = c / d.ic() / t.stride, x = c / d.ic() % t.stride;  // the phase
      for (int64_t b = 0; b < g.blocks; ++b) {
        const int64_t o = (g.first_block + b) * kBlock;
        a.lanes = std::min(kBlock, d.oc() - o);
        std::fill(taps, taps + h.taps * w.taps, nullptr);
        for (int64_t kh = y; kh < d.kh(); kh += t.stride) {
          for (int64_t kw = x; kw < d.kw(); kw += t.stride) {
            taps[kh / t.stride * w.taps + kw / t.stride] =
                hwio + ((kh * d.kw() + kw) * d.ic() + c % d.ic()) * d.oc() + o;
          }
        }
        a.out = packed + g.offset + c * lanes + b * kBlock;
        kernels.transform(a);
      }
    }
  });
  if (!p.fip) return;
  pool.ParallelFor(groups * planes, [&](int64_t task, int) {
    const OutputGroup& g = p.groups[task / planes];
    float* plane = packed + task % planes * plane_floats;
    float* unscale = plane + plane_floats - 2 * plan.ocb * kBlock + g.first_block * kBlock;
    PackFipPlane(plan.isa, channels, g.blocks * kBlock, plane + g.offset, unscale,
                 unscale + plan.ocb * kBlock);
  });
}

}  // namespace bd
