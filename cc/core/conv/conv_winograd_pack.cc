// Weights into Winograd's domain; the matrices are in conv_winograd_kernel.h.
#include <algorithm>
#include <vector>

#include "cc/core/conv/conv_winograd.h"
#include "cc/core/conv/conv_winograd_kernel.h"

namespace bd {
namespace {

constexpr int kMaxAlpha = 6;

// G, alpha x 3; the last row is the point at infinity.
struct WeightsTransform {
  int alpha;
  double g[kMaxAlpha][3];

  explicit WeightsTransform(int m) : alpha(m + 2), g{} {
    const double points[2][kMaxAlpha - 1] = {{0, 1, -1},
                                             {0, kWinogradA, -kWinogradA, kWinogradB, -kWinogradB}};
    const double* p = points[m == 4];
    for (int i = 0; i < alpha - 1; ++i) {
      double denominator = 1;
      for (int j = 0; j < alpha - 1; ++j) denominator *= j == i ? 1 : p[i] - p[j];
      for (int k = 0; k < 3; ++k)
        g[i][k] = (k == 0 ? 1 : k == 1 ? p[i] : p[i] * p[i]) / denominator;
    }
    g[alpha - 1][2] = 1;
  }

  // u[xi] = (G w G^T)[xi] for the nine taps w of one channel pair.
  void Apply(const double (&w)[9], double (&u)[kMaxAlpha * kMaxAlpha]) const {
    double half[kMaxAlpha][3];
    for (int i = 0; i < alpha; ++i) {
      for (int j = 0; j < 3; ++j) {
        half[i][j] = g[i][0] * w[j] + g[i][1] * w[3 + j] + g[i][2] * w[6 + j];
      }
    }
    for (int i = 0; i < alpha; ++i) {
      for (int j = 0; j < alpha; ++j) {
        u[i * alpha + j] = half[i][0] * g[j][0] + half[i][1] * g[j][1] + half[i][2] * g[j][2];
      }
    }
  }
};

}  // namespace

void PackWinograd(const ConvPlan& plan, const float* hwio, float* packed, ThreadPool& pool) {
  const ConvDesc& d = plan.desc;
  const WeightsTransform transform(plan.packing.winograd_m);
  const int planes = transform.alpha * transform.alpha;
  const int64_t plane_floats = plan.packed_floats / planes;
  pool.ParallelFor(static_cast<int64_t>(plan.groups.size()), [&](int64_t index, int) {
    const OutputGroup& g = plan.groups[index];
    const int64_t lanes = g.blocks * kBlock, o0 = g.first_block * kBlock;
    for (int64_t c = 0; c < d.ic; ++c) {
      float* out = packed + g.weights_offset + c * lanes;
      for (int64_t i = 0; i < lanes; ++i) {
        double w[9] = {}, u[kMaxAlpha * kMaxAlpha];
        for (int t = 0; t < 9 && o0 + i < d.oc; ++t) w[t] = hwio[(t * d.ic + c) * d.oc + o0 + i];
        transform.Apply(w, u);
        for (int xi = 0; xi < planes; ++xi) out[xi * plane_floats + i] = static_cast<float>(u[xi]);
      }
    }
  });
}

}  // namespace bd
