// Gradients of weights against the definition: every instruction set, layouts, windows, groups,
// tails, numbers of threads; small integers, with zero tolerance.
#include "cc/core/conv/backward_weights/backward_weights.h"

#include <gtest/gtest.h>

#include <vector>

#include "cc/base/memory/aligned_buffer.h"
#include "tests/cc/core/conv/backward_weights/backward_weights_ref.h"
#include "tests/cc/core/conv/conv_case.h"
#include "tests/cc/guarded_buffer.h"
#include "tests/cc/isas.h"

namespace bd {
namespace {

struct Window {
  int64_t kh, kw, sh, sw, dh, dw, top, left, bottom, right;
};

ConvShape Conv(int64_t n, int64_t ic, int64_t oc, int64_t ih, int64_t iw, const Window& w,
               int64_t groups = 1) {
  ConvShape d = ConvOf({n, ic, ih, iw}, oc, {w.kh, w.kw}, {w.sh, w.sw}, {w.dh, w.dw},
                       {w.top, w.left}, {w.bottom, w.right});
  d.groups = groups;
  return d;
}

// Small integers; zeros in the channel tail of a blocked tensor.
void Fill(GuardedBuffer& x, const TensorView& view, int64_t seed) {
  x.FillIntegers(seed);
  ClearTails(view, x.data());
}

std::string Text(const BackwardWeightsPlan& plan) {
  const ConvDesc& d = plan.desc;
  std::string text = std::string(IsaName(plan.isa)) + " threads " + std::to_string(plan.threads) +
                     " splits " + std::to_string(plan.splits) + " " + LayoutName(d.src.layout()) +
                     " " + LayoutName(d.dst.layout());
  for (int64_t v : {d.n(), d.ic(), d.oc(), d.ih(), d.iw(), d.oh(), d.ow(), d.kh(), d.kw(), d.sh(),
                    d.sw(), d.dh(), d.dw(), d.pad_top(), d.pad_left(), d.groups}) {
    text += " " + std::to_string(v);
  }
  return text;
}

void Check(const ConvDesc& d, int threads) {
  GuardedBuffer src(d.src.elements()), ddst(d.dst.elements());
  Fill(src, d.src, 3);
  Fill(ddst, d.dst, 11);
  const int64_t count = d.kh() * d.kw() * (d.ic() / d.groups) * d.oc();
  std::vector<float> expected(count);
  BackwardWeightsRef(d, src.data(), ddst.data(), expected.data());
  for (Isa isa : TestIsas()) {
    BackwardWeightsPlan plan;
    ASSERT_EQ(MakeBackwardWeightsPlan(d, isa, threads, &plan), "");
    const AlignedBuffer scratch(plan.scratch.bytes());
    for (GuardedBuffer::Guard guard : {GuardedBuffer::kAtStart, GuardedBuffer::kAtEnd}) {
      GuardedBuffer dweights(count, guard);
      RunBackwardWeights(plan, {src.data(), ddst.data(), dweights.data(), scratch.data()},
                         ThreadPool::Shared(threads));
      for (int64_t i = 0; i < count; ++i) {
        ASSERT_EQ(dweights[i], expected[i]) << Text(plan) << " at " << i;
      }
    }
  }
}

void CheckLayouts(ConvShape d, int threads = 1) {
  for (Layout src : {Layout::nChw16c, Layout::nhwc}) {
    for (Layout dst : {Layout::nChw16c, Layout::nhwc}) {
      d.src_layout = src;
      d.dst_layout = dst;
      Check(d, threads);
    }
  }
}

constexpr Window kPointwise = {1, 1, 1, 1, 1, 1, 0, 0, 0, 0};
constexpr Window kSame = {3, 3, 1, 1, 1, 1, 1, 1, 1, 1};
constexpr Window kStrided = {3, 3, 2, 2, 1, 1, 0, 0, 1, 1};

TEST(BackwardWeights, WindowsAndTails) {
  const Window windows[] = {kPointwise,
                            kSame,
                            kStrided,
                            {1, 1, 2, 2, 1, 1, 0, 0, 0, 0},
                            {7, 7, 2, 2, 1, 1, 3, 3, 3, 3},
                            {2, 3, 1, 2, 1, 1, 0, 1, 1, 0},
                            {3, 3, 1, 1, 2, 3, 2, 3, 2, 3},
                            {3, 2, 3, 1, 2, 1, 4, 5, 3, 4},   // padding wider than the window
                            {5, 5, 1, 1, 1, 1, 4, 4, 4, 4}};  // than the image, below
  for (const Window& window : windows) {
    for (int64_t ic : {3, 16, 21}) {
      for (int64_t oc : {5, 16, 40}) CheckLayouts(Conv(2, ic, oc, 9, 8, window));
    }
  }
  CheckLayouts(Conv(1, 4, 3, 2, 1, windows[8]));
  CheckLayouts(Conv(3, 1, 1, 5, 5, kSame));
}

TEST(BackwardWeights, ThreadsShareChannelsOrPixels) {
  for (int threads : {2, 3, 5}) {
    CheckLayouts(Conv(2, 40, 24, 6, 7, kSame), threads);    // few pixels
    CheckLayouts(Conv(3, 18, 20, 40, 41, kSame), threads);  // many: sums of their own
    CheckLayouts(Conv(3, 18, 20, 40, 41, kStrided), threads);
    CheckLayouts(Conv(9, 33, 17, 10, 10, kPointwise), threads);
  }
  BackwardWeightsPlan plan;
  ASSERT_EQ(MakeBackwardWeightsPlan(Conv(3, 18, 20, 40, 41, kSame), Isa::kGeneric, 3, &plan), "");
  EXPECT_GT(plan.splits, 1);
  ASSERT_EQ(MakeBackwardWeightsPlan(Conv(2, 40, 24, 6, 7, kSame), Isa::kGeneric, 3, &plan), "");
  EXPECT_EQ(plan.splits, 1);
}

TEST(BackwardWeights, Groups) {
  for (int threads : {1, 3}) {
    for (const Window& window : {kSame, kStrided}) {
      Check(Conv(2, 48, 96, 8, 9, window, 3), threads);
      Check(Conv(2, 21, 21, 8, 9, window, 21), threads);
      Check(Conv(3, 32, 32, 40, 41, window, 32), threads);
    }
  }
}

TEST(BackwardWeights, NoPixels) {
  for (int64_t n : {0, 2}) {
    ConvShape d = Conv(n, 16, 16, 5, 5, kSame);
    if (n > 0) d.oh = 0;
    Check(d, 2);
  }
}

TEST(BackwardWeights, SaysWhatItDoesNotDo) {
  BackwardWeightsPlan plan;
  ConvShape d = Conv(1, 24, 24, 5, 5, kSame, 3);
  EXPECT_NE(MakeBackwardWeightsPlan(d, Isa::kGeneric, 1, &plan), "");
  d = Conv(1, 32, 32, 5, 5, kSame, 32);
  d.src_layout = Layout::nhwc;
  EXPECT_NE(MakeBackwardWeightsPlan(d, Isa::kGeneric, 1, &plan), "");
  EXPECT_NE(MakeBackwardWeightsPlan(Conv(1, 24, 24, 5, 5, kSame, 5), Isa::kGeneric, 1, &plan), "");
}

}  // namespace
}  // namespace bd
