#include "cc/core/conv/conv_algorithms.h"

#include "cc/core/conv/depthwise/depthwise.h"
#include "cc/core/conv/direct/direct.h"
#include "cc/core/conv/gemm/conv_gemm.h"
#include "cc/core/conv/lanes/lanes.h"
#include "cc/core/conv/rows/rows.h"
#include "cc/core/conv/winograd/winograd.h"

namespace bd {
namespace {

Algorithm Direct(const char* name, DirectVariant variant) {
  const bool narrow = variant == kBlockedTiles || variant == kNhwcTiles;
  return {name, variant, narrow, DirectApplies, DirectCost, PlanDirect, PackDirect, RunDirect};
}

std::vector<Algorithm> MakeTable() {
  std::vector<Algorithm> table = {
      {"rows", 0, false, RowsApplies, RowsCost, PlanRows, PackRows, RunRows},
      {"depthwise", 0, true, DepthwiseApplies, DepthwiseCost, PlanDepthwise, PackDepthwise,
       RunDepthwise},
      {"lanes", 0, false, LanesApplies, LanesCost, PlanLanes, PackLanes, RunLanes},
      Direct("paired", kFipTiles),
      Direct("direct", kBlockedTiles),
      {"gemm", 0, true, GemmApplies, GemmCost, PlanGemm, PackGemmWeights, RunConvGemm},
      Direct("direct_plain", kNhwcTiles),
      Direct("dot", kDotLanes),
  };
  for (int row = 0; row < kNumWinogradTransforms; ++row) {
    table.push_back({kWinogradTransforms[row].name, row, false, WinogradApplies, WinogradCost,
                     PlanWinograd, PackWinograd, RunWinograd});
  }
  return table;
}

}  // namespace

const std::vector<Algorithm>& ConvAlgorithms() {
  static const auto* const table = new std::vector<Algorithm>(MakeTable());
  return *table;
}

std::string WhyNot(const Algorithm& algorithm, const ConvDesc& desc, Isa isa) {
  if (desc.narrow() && !algorithm.narrow) return "src is not float32";
  return algorithm.applies(algorithm, desc, isa);
}

}  // namespace bd
