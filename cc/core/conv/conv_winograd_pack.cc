// Weights into Winograd's domain; the matrices are in conv_winograd_kernel.h.
#include <algorithm>
#include <vector>

#include "cc/core/conv/conv_paired.h"
#include "cc/core/conv/conv_winograd.h"

namespace bd {
namespace {

// The largest value of `size` in the table.
template <typename Size>
constexpr int Most(Size size) {
  int most = 0;
  for (const WinogradTransform& t : kWinogradTransforms) most = std::max(most, size(t));
  return most;
}

using Transform = WinogradTransform;
constexpr int kMaxAlpha =
    Most([](const Transform& t) { return std::max(t.alpha_h(), t.alpha_w()); });
constexpr int kMaxTaps = Most([](const Transform& t) { return std::max(t.taps_h(), t.taps_w()); });
constexpr int kMaxWindow = Most([](const Transform& t) { return t.taps_h() * t.taps_w(); });
constexpr int kMaxPlanes = Most([](const Transform& t) { return t.planes(); });

// G of one axis, alpha x taps; the last row is the point at infinity.
struct AxisTransform {
  int taps, alpha;
  double g[kMaxAlpha][kMaxTaps];

  AxisTransform(int m, int r) : taps(r), alpha(m + r - 1), g{} {
    const WinogradPoints half = WinogradPointsOf(alpha);
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
      for (int k = 0; k < taps; ++k, power *= p[i]) g[i][k] = power / denominator;
    }
    g[alpha - 1][taps - 1] = 1.;
  }
};

struct WeightsTransform {
  AxisTransform h, w;

  explicit WeightsTransform(const WinogradTransform& t)
      : h(t.mh, t.taps_h()), w(t.mw, t.taps_w()) {}

  // u[xi] = (G w G^T)[xi] for the taps of one channel pair.
  void Apply(const double* taps, double* u) const {
    double half[kMaxAlpha][kMaxTaps] = {};
    for (int i = 0; i < h.alpha; ++i) {
      for (int k = 0; k < h.taps; ++k) {
        for (int j = 0; j < w.taps; ++j) half[i][j] += h.g[i][k] * taps[k * w.taps + j];
      }
    }
    for (int i = 0; i < h.alpha; ++i) {
      for (int j = 0; j < w.alpha; ++j) {
        double sum = 0.;
        for (int k = 0; k < w.taps; ++k) sum += half[i][k] * w.g[j][k];
        u[i * w.alpha + j] = sum;
      }
    }
  }
};

}  // namespace

void PackWinograd(const ConvPlan& plan, const float* hwio, float* packed, ThreadPool& pool) {
  const ConvDesc& d = plan.desc;
  const WinogradTransform& t = TransformOf(plan.packing);
  const WeightsTransform transform(t);
  const int planes = t.planes();
  const int64_t plane_floats = plan.packed_floats / planes;
  pool.ParallelFor(static_cast<int64_t>(plan.groups.size()), [&](int64_t index, int) {
    const OutputGroup& g = plan.groups[index];
    const int64_t lanes = g.blocks * kBlock, o0 = g.first_block * kBlock;
    for (int64_t c = 0; c < d.ic * t.phases(); ++c) {
      const int64_t y = c / d.ic / t.stride, x = c / d.ic % t.stride;  // the phase
      float* out = packed + g.weights_offset + c * lanes;
      for (int64_t i = 0; i < lanes; ++i) {
        double taps[kMaxWindow] = {}, u[kMaxPlanes];
        for (int64_t kh = y; kh < d.kh && o0 + i < d.oc; kh += t.stride) {
          for (int64_t kw = x; kw < d.kw; kw += t.stride) {
            taps[kh / t.stride * t.taps_w() + kw / t.stride] =
                hwio[((kh * d.kw + kw) * d.ic + c % d.ic) * d.oc + o0 + i];
          }
        }
        transform.Apply(taps, u);
        for (int xi = 0; xi < planes; ++xi) out[xi * plane_floats + i] = static_cast<float>(u[xi]);
      }
    }
    for (int xi = 0; xi < planes && plan.packing.paired; ++xi) {
      float* plane = packed + xi * plane_floats;
      float* unscale = plane + plane_floats - 2 * plan.ocb * kBlock + o0;
      PackPairedPlane(d.ic * t.phases(), lanes, plane + g.weights_offset, unscale,
                      unscale + plan.ocb * kBlock);
    }
  });
}

}  // namespace bd
