// W, then U; of each 16 units the panels of their gates one after the other, panel by panel k rows
// of 16 columns: [16 units][gate][k][16], or lines of narrow weights (product_kernel.h). Units that
// do not exist are zero. Where floats are packed for pairs, the columns are scaled, and behind both
// matrices stand their scales and terms.
#include <algorithm>
#include <cstring>

#include "cc/core/gemm/fip.h"
#include "cc/core/gemm/gemm.h"
#include "cc/core/rnn/rnn.h"

namespace bd {
namespace {

void ScaleForPairs(const RnnPlan& plan, const RnnMatrix& to, int64_t panel, float* packed) {
  if (to.unscale < 0) return;
  PackFipPlane(plan.isa, to.k, kRnnPanel, packed + to.panels[panel].offset,
               packed + to.unscale + panel * kRnnPanel, packed + to.terms + panel * kRnnPanel);
}

void PackOnePanel(const RnnPlan& plan, const void* matrix, const RnnMatrix& to, int64_t panel,
                  float* packed) {
  const int64_t units = plan.desc.units, gates = plan.desc.gates();
  const int64_t gate = panel % gates, first = panel / gates * kRnnPanel;
  const int64_t count = std::min<int64_t>(kRnnPanel, units - first);
  const GemmB from = {BytesFrom(matrix, (gate * units + first) * SizeOf(to.weights)),
                      gates * units};
  float* const out = packed + to.panels[panel].offset;
  if (to.weights != DataType::f32) return PackLines(to.weights, from, to.k, count, out);
  PackPanel(from, to.k, count, 1, out);
  ScaleForPairs(plan, to, panel, packed);
}

// Of the columns of the kernel, in the order of panels.
const float* OrderScales(const RnnPlan& plan, const float* from, float* ordered) {
  const RnnDesc& d = plan.desc;
  for (int64_t panel = 0; panel < plan.panels(); ++panel) {
    const int64_t unit = panel / d.gates() * kRnnPanel;
    float* to = ordered + panel * kRnnPanel;
    std::memset(to, 0, sizeof(float) * kRnnPanel);
    std::copy_n(from + panel % d.gates() * d.units + unit,
                std::min<int64_t>(kRnnPanel, d.units - unit), to);
  }
  return ordered;
}

}  // namespace

void PackRnnWeights(const RnnPlan& plan, const void* kernel, const void* recurrent_kernel,
                    float* packed, ThreadPool& pool) {
  const RnnMatrix& w = plan.widens() ? plan.narrow_w : plan.w;
  const RnnMatrix& u = plan.widens() ? plan.narrow_u : plan.u;
  pool.ParallelFor(plan.panels(), [&](int64_t i, int) {
    PackOnePanel(plan, kernel, w, i, packed);
    PackOnePanel(plan, recurrent_kernel, u, i, packed);
  });
}

const float* PrepareRnnWeights(const RnnPlan& plan, const RnnBuffers& buffers, float* scales,
                               float* widened, ThreadPool& pool) {
  const float *of_w = nullptr, *of_u = nullptr;
  if (plan.desc.weights == DataType::s8) {
    of_w = OrderScales(plan, buffers.kernel_scales, scales);
    of_u = OrderScales(plan, buffers.recurrent_scales, scales + plan.panels() * kRnnPanel);
  }
  if (!plan.widens()) return buffers.packed;
  const auto widen = [&](const RnnMatrix& from, const RnnMatrix& to, int64_t panel,
                         const float* scales_of) {
    plan.product->widen({from.weights, buffers.packed + from.panels[panel].offset, from.k,
                         scales_of == nullptr ? nullptr : scales_of + panel * kRnnPanel,
                         widened + to.panels[panel].offset, kRnnPanel});
    ScaleForPairs(plan, to, panel, widened);
  };
  pool.ParallelFor(plan.panels(), [&](int64_t i, int) {
    widen(plan.narrow_w, plan.w, i, of_w);
    widen(plan.narrow_u, plan.u, i, of_u);
  });
  return widened;
}

void OrderRnnBias(const RnnPlan& plan, const float* bias, float* ordered) {
  const RnnDesc& d = plan.desc;
  const int64_t units = d.units, gates = d.gates(), sums = plan.columns / plan.block;
  const bool two = d.bias_rows() == 2;
  for (int64_t block = 0; block < plan.blocks; ++block) {
    float* to = ordered + block * plan.columns;
    std::memset(to, 0, sizeof(float) * plan.columns);
    if (bias == nullptr) continue;
    const int64_t unit = block * plan.block, count = std::min(plan.block, units - unit);
    const float* from = bias + unit;
    for (int64_t g = 0; g < sums; ++g, to += plan.block) {
      const bool adds = two && g < 2;
      const int64_t row = g < gates ? g : 5;
      for (int64_t u = 0; u < count; ++u) {
        to[u] = from[row * units + u] + (adds ? from[(3 + g) * units + u] : 0.f);
      }
    }
  }
}

}  // namespace bd
