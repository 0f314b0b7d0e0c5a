// Tasks and weights of depthwise convolution. There is no strip: tasks are ranges of the
// n * icb * oh output rows, of about 2,000 cycles and more.
#include <algorithm>
#include <memory>

#include "cc/core/conv/common/cost.h"
#include "cc/core/conv/depthwise/depthwise.h"
#include "cc/core/gemm/narrow_pack.h"

namespace bd {

std::string DepthwiseApplies(const Algorithm&, const ConvDesc& d, Isa) {
  if (d.pooled()) return "depthwise rows do not pool";
  if (!d.src.blocked() || !d.dst.blocked()) {
    return "src and dst are not both nChw16c";
  }
  if (!d.depthwise()) return "not one input and one output channel a group";
  return d.kh() <= kMaxDepthwiseRows ? "" : "the window has too many rows";
}

ConvCost DepthwiseCost(const Algorithm&, const ConvDesc& d, Isa, int threads) {
  return {d.n() * CeilDiv(d.ic(), kBlock) * d.oh() * DepthwiseRowCycles(d, 0) / threads};
}

void PlanDepthwise(const Algorithm& self, ConvPlan* plan) {
  const ConvDesc& d = plan->desc;
  const bool bytes = d.src.dtype() == DataType::u8;
  const auto own = std::make_shared<DepthwisePlan>();
  if (bytes) ShapeDepthwiseBytes(d, plan->isa, own.get());
  plan->pack_key = {self.name, d.src.dtype(), own->quads ? 2 : 1};
  const int64_t dwords = bytes ? own->rows * own->taps + 1 : d.kh() * d.kw();
  plan->packed_bytes = plan->icb * dwords * kBlock * sizeof(float);
  const int64_t rows = d.n() * plan->icb * d.oh();
  const int64_t work = rows * d.ow() * d.kh() * d.kw() / 2;
  if (plan->empty()) return;
  if (bytes) {
    plan->own = own;
    PlanDepthwiseBytes(plan, own.get());
  }
  plan->tasks = std::clamp<int64_t>(work / 2000, 1, std::min<int64_t>(rows, 16 * plan->threads));
}

void PackDepthwise(const ConvPlan& plan, const float* hwio, float* packed, ThreadPool&,
                   const float*) {
  const ConvDesc& d = plan.desc;
  if (d.src.dtype() == DataType::u8) {
    return PackDepthwiseBytes(plan, reinterpret_cast<const int8_t*>(hwio), packed);
  }
  const int64_t taps = d.kh() * d.kw();
  for (int64_t b = 0; b < plan.icb; ++b) {
    const int64_t lanes = std::min(kBlock, d.ic() - b * kBlock);
    for (int64_t t = 0; t < taps; ++t, packed += kBlock) {
      const int64_t from = t * d.ic() + b * kBlock;
      if (!d.narrow()) {
        std::fill(std::copy_n(hwio + from, lanes, packed), packed + kBlock, 0.f);
        continue;
      }
      for (int64_t i = 0; i < kBlock; ++i) {
        packed[i] = i < lanes ? PackedBfloat16(d.types.weights, hwio, from + i) : 0.f;
      }
    }
  }
}

}  // namespace bd
