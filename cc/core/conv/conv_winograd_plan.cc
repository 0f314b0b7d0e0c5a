// When Winograd pays, and in which blocks it runs.
#include <algorithm>
#include <limits>

#include "cc/core/conv/conv_winograd.h"

namespace bd {
namespace {

// Measured constants, in cycles of one core (Zen 4, 3.7 GHz, AVX-512). A
// multiply-add of 16 channels is one; `source` and `dst` are a tile of a block
// through its transform.
struct WinogradCost {
  int m;
  double source, dst;
};
constexpr WinogradCost kCosts[] = {{2, 60, 60}, {4, 260, 240}};

// Weights come from memory once a call, hidden behind multiply-adds as far as
// these last: a 64-byte line takes 9.2 cycles for one thread (26 GB/s) and 6.3
// where more of them pull (38 GB/s).
constexpr double kLineOneThread = 9.2, kLineShared = 6.3;
constexpr double kDirectOverhead = 1.05;  // measured over multiply-adds alone
constexpr double kForkJoin = 4000;        // a parallel stage: wake-up, last tile

bool Applies(const ConvDesc& d) {
  return d.kh == 3 && d.kw == 3 && d.sh == 1 && d.sw == 1 && d.dh == 1 && d.dw == 1 &&
         d.groups == 1 && d.src_layout == Layout::nChw16c && d.dst_layout == Layout::nChw16c;
}

// U larger than this is read once a call by sharing blocks; V and M of a block
// of one thread's own stay in its L2.
constexpr int64_t kOwnWeightsBytes = 3 << 20;
constexpr int64_t kFewTilesWeightsBytes = 1 << 20;
constexpr int64_t kOwnBlockBytes = 600 << 10;
constexpr int64_t kSharedBlockBytes = 16 << 20;
constexpr int64_t kTileStep = 14;  // pixels of the widest register tile

int64_t CountTiles(const ConvDesc& d, int m) { return d.n * CeilDiv(d.oh, m) * CeilDiv(d.ow, m); }

int64_t TransformedFloats(const ConvDesc& d, int m) {
  return (m + 2) * (m + 2) * d.ic * CeilDiv(d.oc, kBlock) * kBlock;
}

bool SharesBlocks(const ConvDesc& d, int m, int threads) {
  const int64_t bytes = 4 * TransformedFloats(d, m);
  return bytes > kOwnWeightsBytes ||
         (bytes > kFewTilesWeightsBytes && CountTiles(d, m) < 4 * kTileStep * threads);
}

double StreamCycles(int64_t weights, int threads) {
  return weights / 16 * std::max(kLineOneThread / threads, kLineShared);
}

double WinogradCycles(const ConvDesc& d, const WinogradCost& cost, int threads) {
  const double tiles = CountTiles(d, cost.m);
  const int64_t weights = TransformedFloats(d, cost.m);
  const double transforms =
      tiles * (CeilDiv(d.ic, kBlock) * cost.source + CeilDiv(d.oc, kBlock) * cost.dst);
  const double stages = SharesBlocks(d, cost.m, threads) ? 3 : 1;
  return std::max(tiles * weights / kBlock / threads, StreamCycles(weights, threads)) +
         transforms / threads + stages * kForkJoin;
}

double DirectCycles(const ConvDesc& d, int threads) {
  const int64_t weights = 9 * d.ic * CeilDiv(d.oc, kBlock) * kBlock;
  const double pixels = static_cast<double>(d.n) * d.oh * d.ow;
  return std::max(kDirectOverhead * pixels * weights / kBlock / threads,
                  StreamCycles(weights, threads)) +
         kForkJoin;
}

}  // namespace

int ChooseWinogradTile(const ConvDesc& desc, int threads) {
  if (desc.algorithm == ConvAlgorithm::kDirect || !Applies(desc)) return 0;
  double best = desc.algorithm == ConvAlgorithm::kWinograd ? std::numeric_limits<double>::infinity()
                                                           : DirectCycles(desc, threads);
  int m = 0;
  for (const WinogradCost& cost : kCosts) {
    const double cycles = WinogradCycles(desc, cost, threads);
    if (cycles < best) {
      best = cycles;
      m = cost.m;
    }
  }
  return m;
}

void PlanWinograd(ConvPlan* plan) {
  const ConvDesc& d = plan->desc;
  const int64_t m = plan->packing.winograd_m, planes = (m + 2) * (m + 2);
  plan->tiles_h = CeilDiv(d.oh, m);
  plan->tiles_w = CeilDiv(d.ow, m);
  const int64_t tiles = d.n * plan->tiles_h * plan->tiles_w;
  const int64_t tile_bytes = 4 * planes * kBlock * (plan->icb + plan->ocb);
  auto blocks_of = [&](int64_t bytes, int64_t multiple) {
    const int64_t most = std::max(kTileStep, bytes / tile_bytes / kTileStep * kTileStep);
    const int64_t blocks = CeilDiv(CeilDiv(tiles, most), multiple) * multiple;
    return CeilDiv(tiles, blocks);
  };
  plan->by_stage = SharesBlocks(d, static_cast<int>(m), plan->threads);
  plan->tile_block =
      plan->by_stage ? blocks_of(kSharedBlockBytes, 1) : blocks_of(kOwnBlockBytes, plan->threads);
  plan->strip.count = tile_bytes / 4 * plan->tile_block;
  for (int64_t b = 0; b < plan->icb; ++b) {
    plan->tap_offsets.push_back(b * plan->tile_block * kBlock);
  }
}

}  // namespace bd
