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
  return BD_CONV_ROW(name, variant, narrow, Direct);
}

std::vector<Algorithm> MakeTable() {
  std::vector<Algorithm> table = {
      BD_CONV_ROW("rows", 0, false, Rows),   BD_CONV_ROW("depthwise", 0, true, Depthwise),
      BD_CONV_ROW("lanes", 0, false, Lanes), Direct("paired", kFipTiles),
      Direct("direct", kBlockedTiles),       BD_CONV_ROW("gemm", 0, true, Gemm),
      Direct("direct_plain", kNhwcTiles),    Direct("dot", kDotLanes),
  };
  for (int row = 0; row < kNumWinogradTransforms; ++row) {
    table.push_back(BD_CONV_ROW(kWinogradTransforms[row].name, row, true, Winograd));
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
