// W, then U; of each 16 units the panels of their gates one after the other, panel by panel k rows
// of 16 columns: [16 units][gate][k][16]. Units that do not exist are zero.
#include <cstring>

#include "cc/core/rnn/rnn.h"

namespace bd {
namespace {

void PackPanel(const RnnPlan& plan, const float* matrix, int64_t k, int64_t panel, float* packed) {
  const int64_t units = plan.desc.units, gates = plan.desc.gates();
  const int64_t gate = panel % gates, first = panel / gates * kRnnPanel;
  const int64_t count = units - first < kRnnPanel ? units - first : kRnnPanel;
  const int64_t stride = gates * units;
  const float* from = matrix + gate * units + first;
  for (int64_t row = 0; row < k; ++row, packed += kRnnPanel) {
    if (count == kRnnPanel) {
      memcpy(packed, from + row * stride, sizeof(float) * kRnnPanel);
      continue;
    }
    for (int64_t j = 0; j < kRnnPanel; ++j) packed[j] = j < count ? from[row * stride + j] : 0.f;
  }
}

}  // namespace

void PackRnnWeights(const RnnPlan& plan, const float* kernel, const float* recurrent_kernel,
                    float* packed, ThreadPool& pool) {
  const RnnDesc& d = plan.desc;
  float* recurrent = packed + plan.panels() * kRnnPanel * d.inputs;
  pool.ParallelFor(plan.panels(), [&](int64_t i, int) {
    PackPanel(plan, kernel, d.inputs, i, packed + i * kRnnPanel * d.inputs);
    PackPanel(plan, recurrent_kernel, d.units, i, recurrent + i * kRnnPanel * d.units);
  });
}

}  // namespace bd
