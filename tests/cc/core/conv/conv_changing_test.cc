// Weights that change: few pixels read each panel once, right after it was packed.
#include <gtest/gtest.h>

#include <utility>

#include "cc/core/conv/direct/direct.h"
#include "tests/cc/core/conv/conv_check.h"
#include "tests/cc/isas.h"

namespace bd {
namespace {

INSTANTIATE_TEST_SUITE_P(Isas, ConvTest, ::testing::ValuesIn(TestIsas()),
                         [](const auto& info) { return IsaName(info.param); });

ConvDesc Changing(ConvDesc d) {
  d.algorithm = ConvAlgorithm::kDirect;
  d.changes_weights = d.hands_plain = true;
  return d;
}

bool PacksPanels(const ConvDesc& d, Isa isa) {
  ConvPlan plan;
  EXPECT_EQ(MakeConvPlan(d, isa, 2, &plan), "");
  EXPECT_EQ(plan.packed_bytes == 0, plan.Own<DirectPlan>().packs_panels);
  return plan.Own<DirectPlan>().packs_panels;
}

TEST_P(ConvTest, PanelsArePackedInTheRun) {
  for (int64_t ic : {16, 52, 400}) {
    for (int64_t oc : {8, 40, 200}) {
      for (auto [size, kernel] : {std::pair<int64_t, int64_t>{7, 3}, {5, 1}, {1, 1}, {8, 5}}) {
        ConvDesc d = Changing(Square(ic, size, oc, kernel, 1, kernel / 2));
        // Where weights are few, strips gain more.
        if (ic > 16 && oc == 200 && size == 7)
          EXPECT_TRUE(PacksPanels(d, GetParam())) << ic << " " << size;
        d.post_ops = Chain("binary(add,channel,#0);sum(#1);eltwise(relu)");
        Run(d);
      }
    }
  }
}

TEST_P(ConvTest, PanelsReadMoreThanOnceArePackedBefore) {
  ConvDesc images = Changing(Square(32, 7, 48, 3, 1, 1)), pixels = images, grouped = images;
  images.n = 2;
  pixels.ih = pixels.iw = pixels.oh = pixels.ow = 9;
  grouped.groups = 2;
  for (const ConvDesc& d : {images, pixels, grouped}) {
    EXPECT_FALSE(PacksPanels(d, GetParam()));
    Run(d);
  }
}

}  // namespace
}  // namespace bd
