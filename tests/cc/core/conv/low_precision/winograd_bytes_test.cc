// Winograd over bytes on every ISA, in guarded memory: exact, as direct sums are.
#include <map>
#include <set>
#include <string>

#include "tests/cc/core/conv/low_precision/low_precision_case.h"

namespace bd {
namespace {

class WinogradBytesTest : public ConvLowPrecisionTest {
 protected:
  void TearDown() override { EXPECT_EQ(algorithms_, std::set<std::string>({"winograd4x4"})); }

  void CheckBytes(LowPrecisionCase c) {
    c.shape.algorithm = ConvAlgorithm::kWinograd;
    const int turn = turn_++;
    Check(c, turn % 2 == 0 ? one_ : two_, turn % 4 < 2 ? Guard::kAtEnd : Guard::kAtStart);
  }
};

INSTANTIATE_TEST_SUITE_P(Isas, WinogradBytesTest, ::testing::ValuesIn(TestIsasOfBytes()), IsaParam);

// Channels around pairs, blocks and panels; planes around tiles; padding by more than a window.
TEST_P(WinogradBytesTest, Tails) {
  const int64_t cases[][5] = {// n, ic, oc, ih, iw
                              {1, 16, 16, 4, 4},  {2, 20, 40, 7, 9},  {1, 37, 33, 17, 18},
                              {2, 16, 16, 1, 1},  {1, 1, 7, 5, 3},    {1, 48, 64, 6, 41},
                              {3, 33, 16, 3, 12}, {1, 17, 20, 10, 66}};
  for (const auto& [n, ic, oc, ih, iw] : cases) {
    for (int64_t pad : {0, 1, 2, 7}) {
      for (int zero_point : {0, 128, 255}) {
        LowPrecisionCase c;
        c.shape = ConvOf({n, ic, ih, iw}, oc, 3, 1, 1, {pad, pad / 2}, {pad, pad - pad / 2});
        if (c.shape.oh < 1 || c.shape.ow < 1) continue;
        c.src_quantization.zero_point = zero_point;
        c.dst = kDstTypes[turn_ % 3];
        c.bias = turn_ % 2 == 0;
        CheckBytes(c);
      }
    }
  }
}

TEST_P(WinogradBytesTest, ChainsAndTypes) {
  for (Layout layout : {Layout::nChw16c, Layout::nhwc}) {
    ForChainsAndTypes([&](LowPrecisionCase c) {
      c.shape.dst_layout = layout;
      CheckBytes(c);
    });
  }
}

// Sums that modulo 2^26 are not themselves: channels in two ranges and in three.
TEST_P(WinogradBytesTest, LargestSums) {
  for (int64_t ic : {224, 236, 480}) {
    for (int src : {0, 255}) {
      for (int weights : {-127, 127}) {
        LowPrecisionCase c;
        c.shape = Square(ic, 6, 16, 3, 1, 1);
        c.src_quantization.zero_point = 128;
        c.dst = f32;
        c.src_least = c.src_most = src;
        c.weights_least = c.weights_most = weights;
        CheckBytes(c);
      }
    }
    LowPrecisionCase c;
    c.shape = Square(ic, 6, 40, 3, 1, 1);
    CheckBytes(c);
  }
}

// More tiles and channels than one task takes.
TEST_P(WinogradBytesTest, LargerPlanes) {
  LowPrecisionCase c;
  c.shape = Square(64, 36, 96, 3, 1, 1);
  c.bias = true;
  c.rest = "eltwise(relu)";
  CheckBytes(c);
}

// More channels than planes of one pass in L2.
TEST_P(WinogradBytesTest, Passes) {
  LowPrecisionCase c;
  c.shape = Square(96, 24, 320, 3, 1, 1);
  c.shape.algorithm = ConvAlgorithm::kWinograd;
  ConvPlan plan;
  ASSERT_EQ(MakeConvPlan(c.Desc(), GetParam(), 1, &plan), "");
  std::map<std::string, int64_t> blocking(plan.blocking.begin(), plan.blocking.end());
  EXPECT_LT(blocking["pass_blocks"], blocking["task_blocks"]);
  Check(c, one_);
}

}  // namespace
}  // namespace bd
