// W, then U; of each 16 units the panels of their gates one after the other, panel by panel k rows
// of 16 columns: [16 units][gate][k][16]. Units that do not exist are zero. Where weights are
// packed for pairs, the columns are scaled, and behind both matrices stand their scales and terms.
#include <cstring>

#include "cc/core/gemm/fip.h"
#include "cc/core/rnn/rnn.h"

namespace bd {
namespace {

void PackPanel(const RnnPlan& plan, const float* matrix, const RnnMatrix& to, int64_t panel,
               float* packed) {
  const int64_t units = plan.desc.units, gates = plan.desc.gates();
  const int64_t gate = panel % gates, first = panel / gates * kRnnPanel;
  const int64_t count = units - first < kRnnPanel ? units - first : kRnnPanel;
  const int64_t stride = gates * units;
  const float* from = matrix + gate * units + first;
  float* const begin = packed + to.panels[panel].offset;
  float* out = begin;
  for (int64_t row = 0; row < to.k; ++row, out += kRnnPanel) {
    if (count == kRnnPanel) {
      memcpy(out, from + row * stride, sizeof(float) * kRnnPanel);
      continue;
    }
    for (int64_t j = 0; j < kRnnPanel; ++j) out[j] = j < count ? from[row * stride + j] : 0.f;
  }
  if (to.unscale < 0) return;
  PackFipPlane(plan.isa, to.k, kRnnPanel, begin, packed + to.unscale + panel * kRnnPanel,
               packed + to.terms + panel * kRnnPanel);
}

}  // namespace

void PackRnnWeights(const RnnPlan& plan, const float* kernel, const float* recurrent_kernel,
                    float* packed, ThreadPool& pool) {
  pool.ParallelFor(plan.panels(), [&](int64_t i, int) {
    PackPanel(plan, kernel, plan.w, i, packed);
    PackPanel(plan, recurrent_kernel, plan.u, i, packed);
  });
}

}  // namespace bd
