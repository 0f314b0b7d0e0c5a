// Winograd on every ISA against the definition of convolution.
#include <gtest/gtest.h>

#include "tests/cc/core/conv/conv_check.h"
#include "tests/cc/isas.h"

namespace bd {
namespace {

using WinogradTest = ConvTest;

INSTANTIATE_TEST_SUITE_P(Isas, WinogradTest, ::testing::ValuesIn(TestIsas()), IsaParam);

// Every window that has a transform: own and shared blocks, channel tails, sizes
// below a tile, tiles that hang over every edge.
TEST_P(WinogradTest, EveryWindow) {
  const int64_t windows[][2] = {{3, 3}, {5, 5}, {1, 3}, {3, 1}, {1, 7}, {7, 1}};
  const int64_t cases[][5] = {// n, ic, oc, ih, iw
                              {1, 16, 16, 4, 4},   {1, 20, 40, 7, 9},  {2, 32, 16, 13, 6},
                              {3, 64, 64, 8, 8},   {1, 160, 96, 5, 5}, {1, 16, 32, 30, 31},
                              {1, 300, 300, 7, 7}, {2, 16, 16, 1, 1},  {1, 48, 16, 57, 3},
                              {1, 37, 33, 17, 17}};
  for (const auto& [kh, kw] : windows) {
    for (const auto& [n, ic, oc, ih, iw] : cases) {
      for (int64_t pad : {0, 2, 7}) {
        ConvShape d =
            ConvOf({n, ic, ih, iw}, oc, {kh, kw}, 1, 1, {pad, pad / 2}, {pad, pad - pad / 2});
        if (d.oh < 1 || d.ow < 1 || (ic + ih > 64 && (kh * kw != 9 || pad > 2))) continue;
        d.algorithm = ConvAlgorithm::kWinograd;
        d.post_ops = Chain("binary(add,channel,#0);eltwise(relu)");
        Run(d, 2e-5);
      }
    }
  }
}

// The same pixels where dst is plain: channels of several groups and tails of them, runs of tiles
// that begin within a row, a chain in registers and one over rows with a plain operand.
TEST_P(WinogradTest, PlainResults) {
  const int64_t cases[][5] = {// n, ic, oc, ih, iw
                              {1, 16, 16, 4, 4},
                              {2, 20, 41, 7, 9},
                              {1, 33, 112, 5, 13},
                              {1, 16, 3, 57, 3}};
  for (const char* chain :
       {"binary(add,channel,#0)", "binary(add,channel,#0);binary(add,tensor,#1);eltwise(relu)"}) {
    for (const auto& [n, ic, oc, ih, iw] : cases) {
      for (int64_t k : {3, 5}) {
        ConvShape d = ConvOf({n, ic, ih, iw}, oc, k, 1, 1, k / 2, k / 2);
        d.dst_layout = Layout::nhwc;
        d.algorithm = ConvAlgorithm::kWinograd;
        d.post_ops = Chain(chain);
        ConvPlan plan;
        ASSERT_EQ(MakeConvPlan(d, GetParam(), 2, &plan), "");
        EXPECT_EQ(std::string(plan.algorithm_name()).rfind("winograd", 0), 0u) << Describe(d, plan);
        Run(d, 2e-5);
      }
    }
  }
}

// A plain source by its phases: any number of colours that fits a block, edges that
// cut through a run of them, tiles that hang over every edge.
TEST_P(WinogradTest, FirstLayers) {
  const int64_t cases[][3] = {{1, 1, 16}, {15, 15, 20}, {34, 21, 16}, {8, 90, 33}};
  for (int64_t ic : {1, 2, 3, 4}) {
    for (const auto& [ih, iw, oc] : cases) {
      for (int64_t pad : {0, 2, 3, 8}) {
        ConvShape d = ConvOf({2, ic, ih, iw}, oc, 7, 2, 1, {pad, pad / 2}, {pad, pad - pad / 2});
        if (ih + 2 * pad < 7 || iw + pad < 7) continue;
        d.src_layout = Layout::nhwc;
        d.algorithm = ConvAlgorithm::kWinograd;
        d.post_ops = Chain("binary(add,channel,#0);eltwise(relu)");
        Run(d, 2e-5);
      }
    }
  }
}

}  // namespace
}  // namespace bd
