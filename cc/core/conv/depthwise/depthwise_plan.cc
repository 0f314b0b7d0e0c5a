// Tasks and weights of depthwise convolution. There is no strip: tasks are ranges of the
// n * icb * oh output rows, of about 2,000 cycles and more.
#include <algorithm>
#include <memory>

#include "cc/core/conv/common/cost.h"
#include "cc/core/conv/depthwise/depthwise.h"
#include "cc/core/gemm/narrow_pack.h"

namespace bd {
namespace {

// Pixels of rows that the kernel makes in one call, which sets out once for them. L1 holds their
// sums, which some epilogues want in memory, and the rows that they read: of dwords, which are four
// times as large, those of fewer pixels.
constexpr int64_t kPixelsOfBytes = 224, kPixelsOfDwords = 28;

bool IsOfBytes(const ConvDesc& d) { return d.src.dtype() == DataType::u8; }

// The window in dwords, of bytes.
void ShapeWindow(const ConvDesc& d, Isa isa, DepthwisePlan* own) {
  own->quads = DepthwiseBytesKernelsFor(isa).quads;
  own->rows = own->quads ? d.kh() : CeilDiv(d.kh(), 2);
  own->row_distance = own->quads ? d.dh() : 2 * d.dh();
  own->taps = own->quads ? CeilDiv(d.kw(), 4) : d.kw();
  own->tap_columns = own->quads ? 4 * d.dw() : d.dw();
}

void PlanRing(ConvPlan* plan, DepthwisePlan* own) {
  const ConvDesc& d = plan->desc;
  own->bytes = own->quads && d.dw() == 1;
  // Quads of bytes have four columns.
  const int64_t behind = own->bytes ? 4 * own->taps - 1 : (own->taps - 1) * own->tap_columns;
  own->columns = (d.ow() - 1) * d.sw() + behind + 1;
  own->row_bytes = own->columns * kBlock;
  if (!own->bytes) own->row_bytes *= sizeof(float);
  own->rows_together = CeilDiv(own->bytes ? kPixelsOfBytes : kPixelsOfDwords, d.ow());
  own->ring_rows = (own->rows_together - 1) * d.sh() + (own->rows - 1) * own->row_distance + 1;
  own->ring = plan->scratch.Book<char>("ring", own->ring_rows * own->row_bytes, plan->threads);
  own->sums =
      plan->scratch.Book<float>("sums", own->rows_together * d.ow() * kBlock, plan->threads);
}

void PackBytes(const ConvPlan& plan, const int8_t* hwio, float* packed) {
  const ConvDesc& d = plan.desc;
  DepthwisePlan own;
  ShapeWindow(d, plan.isa, &own);
  int32_t* const sums =
      reinterpret_cast<int32_t*>(packed + plan.icb * own.rows * own.taps * kBlock);
  std::fill_n(sums, plan.icb * kBlock, 0);
  for (int64_t b = 0; b < plan.icb; ++b) {
    for (int64_t row = 0; row < own.rows; ++row) {
      for (int64_t tap = 0; tap < own.taps; ++tap, packed += kBlock) {
        const auto index_of = [&](int64_t k, int64_t lane) -> int64_t {
          const int64_t h = own.quads ? row : 2 * row + k, w = own.quads ? 4 * tap + k : tap;
          const int64_t c = b * kBlock + lane;
          return h < d.kh() && w < d.kw() && c < d.ic() ? (h * d.kw() + w) * d.ic() + c : -1;
        };
        PackNarrow(own.quads ? TileFamily::kInt8 : TileFamily::kWords, DataType::s8, hwio,
                   own.quads ? 4 : 2, kBlock, index_of, packed, sums + b * kBlock);
      }
    }
  }
}

std::string Applies(const Algorithm&, const ConvDesc& d, Isa) {
  if (d.pooled()) return "depthwise rows do not pool";
  if (!d.src.blocked() || !d.dst.blocked()) {
    return "src and dst are not both nChw16c";
  }
  if (!d.depthwise()) return "not one input and one output channel a group";
  return d.kh() <= kMaxDepthwiseRows ? "" : "the window has too many rows";
}

ConvCost Cost(const Algorithm&, const ConvDesc& d, Isa, int threads) {
  return {d.n() * CeilDiv(d.ic(), kBlock) * d.oh() * DepthwiseRowCycles(d, 0) / threads};
}

void Plan(const Algorithm& self, ConvPlan* plan) {
  const ConvDesc& d = plan->desc;
  const bool bytes = IsOfBytes(d);
  const auto own = std::make_shared<DepthwisePlan>();
  if (bytes) ShapeWindow(d, plan->isa, own.get());
  plan->pack_key = {self.name, d.src.dtype(), own->quads ? 2 : 1};
  const int64_t dwords = bytes ? own->rows * own->taps + 1 : d.kh() * d.kw();
  plan->packed_bytes = plan->icb * dwords * kBlock * sizeof(float);
  const int64_t rows = d.n() * plan->icb * d.oh();
  const int64_t work = rows * d.ow() * d.kh() * d.kw() / 2;
  if (plan->empty()) return;
  if (bytes) {
    plan->own = own;
    PlanRing(plan, own.get());
  }
  plan->tasks = std::clamp<int64_t>(work / 2000, 1, std::min<int64_t>(rows, 16 * plan->threads));
}

}  // namespace

const Algorithm kDepthwise = {"depthwise", 0,    true,          Applies,
                              Cost,        Plan, PackDepthwise, RunDepthwise};

void PackDepthwise(const ConvPlan& plan, const float* hwio, float* packed, ThreadPool&) {
  const ConvDesc& d = plan.desc;
  if (IsOfBytes(d)) return PackBytes(plan, reinterpret_cast<const int8_t*>(hwio), packed);
  for (int64_t b = 0; b < plan.icb; ++b) {
    const int64_t lanes = std::min(kBlock, d.ic() - b * kBlock);
    for (int64_t t = 0; t < d.kh() * d.kw(); ++t) {
      const int64_t from = t * d.ic() + b * kBlock;
      for (int64_t i = 0; i < kBlock; ++i) {
        *packed++ = i >= lanes   ? 0.f
                    : d.narrow() ? PackedBfloat16(d.types.weights, hwio, from + i)
                                 : hwio[from + i];
      }
    }
  }
}

}  // namespace bd
