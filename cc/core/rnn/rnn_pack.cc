// W, then U; of each block of units its panels one after the other, panel by panel k rows of
// 16 columns: [block][gate][16 units of the block][k][16]. Units that do not exist are zero.
#include <cstring>

#include "cc/core/rnn/rnn.h"

namespace bd {
namespace {

void PackPanel(const RnnPlan& plan, const float* matrix, int64_t k, int64_t block, int panel,
               float* packed) {
  const int64_t per_gate = plan.block / kRnnPanel, units = plan.desc.units;
  const int64_t gate = panel / per_gate;
  const int64_t first = block * plan.block + panel % per_gate * kRnnPanel;
  const int64_t count = first >= units ? 0 : units - first < kRnnPanel ? units - first : kRnnPanel;
  const int64_t stride = plan.desc.gates() * units;
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
  const int64_t panels = plan.blocks * plan.panels;
  float* recurrent = packed + panels * kRnnPanel * d.inputs;
  pool.ParallelFor(panels, [&](int64_t i, int) {
    const int64_t block = i / plan.panels;
    const int panel = static_cast<int>(i % plan.panels);
    PackPanel(plan, kernel, d.inputs, block, panel, packed + i * kRnnPanel * d.inputs);
    PackPanel(plan, recurrent_kernel, d.units, block, panel, recurrent + i * kRnnPanel * d.units);
  });
}

}  // namespace bd
