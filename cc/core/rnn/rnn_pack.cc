// What a run begins with. Packed weights are W, then U; of each 16 units the panels of their gates
// one after the other, panel by panel k rows of 16 columns: [16 units][gate][k][16], or lines of
// low-precision weights (product_kernel.h). Units that do not exist are zero. Where products may be
// in pairs, columns of floats are scaled for them, and after both matrices stand scales and terms,
// of low-precision weights those of the floats that a call makes of them.
#include <algorithm>
#include <cstring>

#include "cc/base/memory/aligned_buffer.h"
#include "cc/core/gemm/fip.h"
#include "cc/core/gemm/gemm.h"
#include "cc/core/rnn/rnn.h"

namespace bd {
namespace {

// Scales a panel of floats for pairs; its scales and terms go where packed weights have them.
void ScaleForPairs(const RnnPlan& plan, const RnnMatrix& to, int64_t panel, float* floats,
                   float* packed) {
  PackFip(plan.isa, to.k, to.k / kBlock, kRnnPanel, floats, packed + to.unscale + panel * kRnnPanel,
          packed + to.terms + panel * kRnnPanel);
}

void PackOnePanel(const RnnPlan& plan, const void* matrix, const RnnMatrix& to, int64_t panel,
                  float* packed) {
  const int64_t units = plan.desc.units, gates = plan.desc.gates();
  const int64_t gate = panel % gates, first = panel / gates * kRnnPanel;
  const int64_t count = std::min<int64_t>(kRnnPanel, units - first);
  const GemmB from = {BytesFrom(matrix, (gate * units + first) * SizeOf(to.weights)),
                      gates * units};
  float* const out = packed + to.panels[panel].offset;
  if (to.weights == DataType::f32) {
    PackPanel(from, to.k, count, 1, out);
    if (to.unscale >= 0) ScaleForPairs(plan, to, panel, out, packed);
    return;
  }
  PackLines(to.weights, from, to.k, count, out);
  if (to.unscale < 0) return;
  AlignedBuffer floats(to.k * kRnnPanel * sizeof(float));
  plan.product->widen({to.weights, out, to.k, nullptr, floats.As<float>(), kRnnPanel, nullptr});
  ScaleForPairs(plan, to, panel, floats.As<float>(), packed);
}

// Of the columns of the kernel, in the order of panels.
void OrderScales(const RnnPlan& plan, const float* from, float* ordered) {
  const RnnDesc& d = plan.desc;
  for (int64_t panel = 0; panel < plan.panels(); ++panel) {
    const int64_t unit = panel / d.gates() * kRnnPanel;
    float* to = ordered + panel * kRnnPanel;
    std::memset(to, 0, sizeof(float) * kRnnPanel);
    std::copy_n(from + panel % d.gates() * d.units + unit,
                std::min<int64_t>(kRnnPanel, d.units - unit), to);
  }
}

}  // namespace

void PackRnnWeights(const RnnPlan& plan, const void* kernel, const void* recurrent_kernel,
                    float* packed, ThreadPool& pool) {
  pool.ParallelFor(plan.panels(), [&](int64_t i, int) {
    PackOnePanel(plan, kernel, plan.packed_w, i, packed);
    PackOnePanel(plan, recurrent_kernel, plan.packed_u, i, packed);
  });
}

RnnChunk::RnnChunk(const RnnPlan& plan, int64_t chunk)
    : block(chunk % plan.blocks),
      row(chunk / plan.blocks * plan.part),
      rows(std::min(plan.part, plan.desc.batch - row)),
      unit(block * plan.block),
      units(std::min(plan.block, plan.desc.units - unit)) {}

RnnCellStep RnnChunk::Step(const RnnPlan& plan) const {
  const RnnDesc& d = plan.desc;
  return {d.activation, d.recurrent_activation, rows,    plan.block,
          units,        plan.columns,           d.units, plan.block};
}

void RnnChunk::Load(const RnnPlan& plan, const float* from, float* chunk) const {
  std::memset(chunk, 0, sizeof(float) * plan.part * plan.block);
  for (int64_t r = 0; from != nullptr && r < rows; ++r) {
    std::copy_n(from + (row + r) * plan.desc.units + unit, units, chunk + r * plan.block);
  }
}

void RnnChunk::Store(const RnnPlan& plan, const float* chunk, float* to) const {
  for (int64_t r = 0; r < rows; ++r) {
    std::copy_n(chunk + r * plan.block, units, to + (row + r) * plan.desc.units + unit);
  }
}

void OrderRnnScales(const RnnPlan& plan, const RnnBuffers& buffers, float* scales) {
  if (plan.desc.weights != DataType::s8) return;
  OrderScales(plan, buffers.kernel_scales, scales);
  OrderScales(plan, buffers.recurrent_scales, scales + plan.panels() * kRnnPanel);
}

void WidenRnnPanels(const RnnPlan& plan, const float* packed, const float* scales, float* widened,
                    int64_t first, int64_t count) {
  const auto widen = [&](const RnnMatrix& from, const RnnMatrix& to, int64_t panel,
                         int64_t scales_at) {
    if (!to.in_scratch) return;
    const float* const stored = packed + from.panels[panel].offset;
    float* const wide = widened + to.panels[panel].offset;
    if (to.weights == DataType::bf16) return plan.row->bfloat16_from_bytes(stored, to.k, wide);
    const float* by = scales == nullptr ? nullptr : scales + scales_at * kRnnPanel;
    alignas(64) float for_pairs[kRnnPanel];
    if (to.unscale >= 0) {  // powers of two, or 0 of columns of zeros
      const float* unscale = to.Unscale(packed, panel);
      for (int64_t i = 0; i < kRnnPanel; ++i) {
        for_pairs[i] = unscale[i] == 0.f ? 1.f : 1.f / unscale[i];
      }
      by = for_pairs;
    }
    plan.product->widen({from.weights, stored, from.k, by, wide, kRnnPanel, nullptr});
  };
  for (int64_t panel = first; panel < first + count; ++panel) {
    widen(plan.packed_w, plan.w, panel, panel);
    widen(plan.packed_u, plan.u, panel, plan.panels() + panel);
  }
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

void FillRnnModes(const RnnDesc& d, const RnnBuffers& b, uint8_t* modes) {
  for (int64_t n = 0; n < d.batch; ++n) {
    bool begun = false;
    for (int64_t s = 0; s < d.steps; ++s) {
      const int64_t t = d.InputStep(s);
      const bool counts = (b.mask.data == nullptr || *b.mask.At(n, t)) &&
                          (b.lengths == nullptr || t < b.lengths[n]);
      begun = begun || counts;
      modes[s * d.batch + n] = counts ? kRnnRuns : begun && !d.zeros_masked ? kRnnKeeps : kRnnZeros;
    }
  }
}

}  // namespace bd
