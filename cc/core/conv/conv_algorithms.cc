#include "cc/core/conv/conv_algorithms.h"

#include "cc/core/conv/direct/direct.h"
#include "cc/core/conv/winograd/winograd.h"

namespace bd {
namespace {

Algorithm Variant(Algorithm room, const char* name, int variant, bool narrow) {
  room.name = name;
  room.variant = variant;
  room.narrow = narrow;
  return room;
}

std::vector<Algorithm> MakeTable() {
  std::vector<Algorithm> table = {
      kRows,
      kDepthwise,
      kLanes,
      Variant(kDirect, "paired", kFipTiles, false),
      Variant(kDirect, "direct", kBlockedTiles, true),
      kGemm,
      Variant(kDirect, "direct_plain", kNhwcTiles, true),
      Variant(kDirect, "dot", kDotLanes, false),
  };
  for (int row = 0; row < kNumWinogradTransforms; ++row) {
    table.push_back(Variant(kWinograd, kWinogradTransforms[row].name, row, true));
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
