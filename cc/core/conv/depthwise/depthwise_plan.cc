// Tasks and weights of depthwise convolution. There is no strip: tasks are ranges of the
// n * icb * oh output rows, of about 2,000 cycles and more.
#include <algorithm>

#include "cc/core/conv/common/cost.h"
#include "cc/core/conv/depthwise/depthwise.h"

namespace bd {
namespace {

double RowCycles(const ConvDesc& d) { return 30 + d.ow() * (1.3 * d.kh() * d.kw() + 6); }

}  // namespace

std::string DepthwiseApplies(const Algorithm&, const ConvDesc& d, Isa) {
  if (d.pooled()) return "depthwise rows do not pool";
  if (!d.src.blocked() || !d.dst.blocked()) {
    return "src and dst are not both nChw16c";
  }
  if (!d.depthwise()) return "not one input and one output channel a group";
  return d.kh() <= kMaxDepthwiseRows ? "" : "the window has too many rows";
}

double DepthwiseCost(const Algorithm&, const ConvDesc& d, Isa, int threads) {
  return d.n() * CeilDiv(d.ic(), kBlock) * d.oh() * RowCycles(d) / threads + kCpu.fork_join;
}

void PlanDepthwise(const Algorithm& self, ConvPlan* plan) {
  const ConvDesc& d = plan->desc;
  plan->pack_key = {self.name, DataType::f32, 1};
  plan->packed_bytes = plan->icb * d.kh() * d.kw() * kBlock * sizeof(float);
  const int64_t rows = d.n() * plan->icb * d.oh();
  const int64_t work = rows * d.ow() * d.kh() * d.kw() / 2;
  if (plan->empty()) return;
  plan->tasks = std::clamp<int64_t>(work / 2000, 1, std::min<int64_t>(rows, 16 * plan->threads));
}

void PackDepthwise(const ConvPlan& plan, const float* hwio, float* packed, ThreadPool&,
                   const float*) {
  const ConvDesc& d = plan.desc;
  const int64_t taps = d.kh() * d.kw();
  for (int64_t b = 0; b < plan.icb; ++b) {
    const int64_t lanes = std::min(kBlock, d.ic() - b * kBlock);
    for (int64_t t = 0; t < taps; ++t, packed += kBlock) {
      const float* from = hwio + t * d.ic() + b * kBlock;
      std::fill(std::copy_n(from, lanes, packed), packed + kBlock, 0.f);
    }
  }
}

}  // namespace bd
