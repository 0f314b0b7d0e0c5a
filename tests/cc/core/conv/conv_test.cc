// Convolution on every ISA against its definition: what all algorithms of products share, and
// depthwise.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <utility>

#include "cc/core/conv/direct/direct.h"
#include "tests/cc/core/conv/conv_check.h"
#include "tests/cc/isas.h"

namespace bd {
namespace {

INSTANTIATE_TEST_SUITE_P(Isas, ConvTest, ::testing::ValuesIn(TestIsas()), IsaParam);

// By each algorithm whose sums are those of the definition.
TEST_P(ConvTest, DrawnShapes) {
  constexpr const char* kChains[] = {
      "", "binary(add,channel,#0);eltwise(relu)",
      "binary(add,channel,#0);sum(#1,scale=-2);eltwise(relu6)", "eltwise(square);sum(#1,scale=2)",
      "binary(add,channel,#0);sum(#1);eltwise(abs);binary(max,tensor,#2)"};
  std::mt19937 rng(1);
  std::map<std::string, int> seen;
  for (int i = 0; i < 1200; ++i) {
    ConvShape d = DrawnShape(rng);
    d.algorithm = rng() % 4 ? ConvAlgorithm::kFip : ConvAlgorithm::kDirect;
    d.post_ops = Chain(kChains[rng() % std::size(kChains)]);
    ++seen[PlanOf(d, GetParam()).algorithm_name()];
    CheckConv(d, GetParam(), rng() % 2 ? one_ : two_, 0,
              rng() % 2 ? GuardedBuffer::kAtEnd : GuardedBuffer::kAtStart);
  }
  for (const char* name : {"direct", "direct_plain", "depthwise", "lanes", "dot", "gemm", "rows"}) {
    EXPECT_GE(seen[name], 4) << name;
  }
  EXPECT_GE(seen["paired"], GetParam() < Isa::kAvx512 ? 0 : 40);
}

// What lies after the last channel stays zero whatever the source holds: infinity times the zeros
// there is NaN, which the next op would read.
TEST_P(ConvTest, TailsAreZeroBehindInfinities) {
  ThreadPool pool(2);
  for (const float value : {INFINITY, -INFINITY, NAN, 3e38f}) {
    for (const char* chain :
         {"", "eltwise(relu)", "eltwise(clip,alpha=0,beta=6)", "eltwise(swish)"}) {
      for (auto [oc, kernel] : {std::pair<int64_t, int64_t>{5, 1}, {17, 1}, {40, 3}, {30, 3}}) {
        for (const auto algorithm : {ConvAlgorithm::kDirect, ConvAlgorithm::kAuto,
                                     ConvAlgorithm::kWinograd, ConvAlgorithm::kFip}) {
          for (const Layout src_layout : {Layout::nChw16c, Layout::nhwc}) {
            ConvShape d = Square(32, 9, oc, kernel, 1, kernel / 2);
            d.src_layout = src_layout;
            d.algorithm = algorithm;
            d.post_ops = Chain(chain);
            const ConvPlan plan = PlanOf(d, GetParam());
            GuardedBuffer src(SrcFloats(d)), weights(WeightFloats(d)), dst(DstFloats(d));
            src.FillIntegers(1);
            weights.FillIntegers(2);
            for (size_t i = 0; i < src.size(); i += 37) src[i] = value;
            PackAndRun(plan, src.data(), weights.data(), nullptr, dst.data(), pool);
            for (int64_t i = 0; i < static_cast<int64_t>(dst.size()); ++i) {
              if (i / (81 * 16) * 16 + i % 16 < oc) continue;
              ASSERT_EQ(dst[i], 0.f) << plan.algorithm_name() << " " << kernel << " oc " << oc
                                     << " [" << chain << "] at " << i;
            }
          }
        }
      }
    }
  }
}

// A blocked plane of one row is run as one of one column, a plain one the other way round; columns
// are copied as one row.
TEST_P(ConvTest, PlanesOfOneRowOrColumn) {
  for (int64_t ic : {3, 20}) {
    for (int64_t stride : {1, 2, 3}) {
      for (int64_t dilation : {1, 4}) {
        for (int64_t pad : {0, 5, 40}) {
          const auto column = [&](int64_t width) {
            return ConvOf({2, ic, 300, width}, 33, {7, 1}, {stride, 1}, {dilation, 1}, {pad, 0},
                          {2, 0});
          };
          const ConvShape row =
              ConvOf({2, ic, 1, 300}, 33, {1, 7}, {1, stride}, {1, dilation}, {0, pad}, {0, 2});
          for (ConvShape d : {row, column(1), column(3)}) {  // rows that are copied whole
            d.algorithm = ConvAlgorithm::kDirect;
            d.src_layout = ic < kBlock ? Layout::nhwc : Layout::nChw16c;
            d.dst_layout = pad == 5 ? Layout::nhwc : Layout::nChw16c;
            d.post_ops = Chain("binary(add,channel,#0);sum(#1);eltwise(relu)");
            Run(d);
          }
        }
      }
    }
  }
}

// What a strip of a line shares with the next may be longer than the strip.
TEST_P(ConvTest, LinesAreSharedOut) {
  for (int64_t dilation : {1, 700}) {
    const Axes around = {0, dilation};
    ConvShape d = ConvOf({1, 8, 1, 20000}, 16, {1, 3}, 1, {1, dilation}, around, around);
    d.src_layout = Layout::nhwc;
    d.algorithm = ConvAlgorithm::kDirect;
    const ConvPlan plan = PlanOf(d, GetParam());
    EXPECT_GE(plan.tasks, 2);
    EXPECT_LT(plan.scratch.bytes(), d.iw * d.ic * int64_t{sizeof(float)});
    Run(d);
  }
}

TEST_P(ConvTest, DeepSourcesRunInChunks) {
  for (auto algorithm : {ConvAlgorithm::kDirect, ConvAlgorithm::kFip}) {
    ConvShape d = Square(400, 6, 40, 3, 1, 1);
    d.algorithm = algorithm;
    Run(d);
    d.post_ops = Chain("binary(add,channel,#0);sum(#1);eltwise(relu)");
    Run(d);
    d.post_ops = Chain("eltwise(square);sum(#1,scale=2)");  // one chunk: sum comes late
    d.ic = 64;
    Run(d);
    d = ConvOf({1, 5000, 1, 9}, 33, 1);
    d.algorithm = algorithm;
    Run(d);
  }
}

// Tiles of few pixels multiply a part of K at a time; a sum after the activation reads dst
// when the last part is done.
TEST_P(ConvTest, DeepPointwiseSourcesRunInPasses) {
  for (int64_t ic : {128, 136, 300, 1025}) {
    for (int64_t stride : {1, 2}) {
      for (const char* chain : {"binary(add,channel,#0);eltwise(relu)", "sum(#1);eltwise(relu)",
                                "eltwise(square);sum(#1,scale=2)"}) {
        ConvShape d = Square(ic, 7, 24, 1, stride, 0);
        d.post_ops = Chain(chain);
        Run(d);
      }
    }
  }
}

// Weights that change: few pixels read each panel once, right after it was packed.
ConvShape Changing(ConvShape d) {
  d.algorithm = ConvAlgorithm::kDirect;
  d.changes_weights = d.hands_plain = true;
  return d;
}

bool PacksPanels(const ConvShape& d, Isa isa) {
  const ConvPlan plan = PlanOf(d, isa);
  // Groups that share blocks are multiplied lane by lane, by an algorithm with a plan of its own.
  if (std::string(plan.algorithm_name()) != "direct") return false;
  EXPECT_EQ(plan.packed_bytes == 0, plan.Own<DirectPlan>().packs_panels);
  return plan.Own<DirectPlan>().packs_panels;
}

TEST_P(ConvTest, PanelsArePackedInTheRun) {
  for (int64_t ic : {16, 52, 400}) {
    for (int64_t oc : {8, 40, 200}) {
      for (auto [size, kernel] : {std::pair<int64_t, int64_t>{7, 3}, {5, 1}, {1, 1}, {8, 5}}) {
        ConvShape d = Changing(Square(ic, size, oc, kernel, 1, kernel / 2));
        // Where weights are few, strips gain more.
        if (ic > 16 && oc == 200 && size == 7) {
          EXPECT_TRUE(PacksPanels(d, GetParam())) << ic << " " << size;
        }
        d.post_ops = Chain("binary(add,channel,#0);sum(#1);eltwise(relu)");
        Run(d);
      }
    }
  }
}

TEST_P(ConvTest, PanelsReadMoreThanOnceArePackedBefore) {
  ConvShape images = Changing(Square(32, 7, 48, 3, 1, 1)), pixels = images, grouped = images;
  images.n = 2;
  pixels.ih = pixels.iw = pixels.oh = pixels.ow = 9;
  grouped.groups = 2;
  for (const ConvShape& d : {images, pixels, grouped}) {
    EXPECT_FALSE(PacksPanels(d, GetParam()));
    Run(d);
  }
}

// Windows that end before, at and after either end of a row.
TEST_P(ConvTest, EndsOfDepthwiseRows) {
  for (int64_t k : {3, 5}) {
    for (int64_t stride : {1, 2}) {
      for (int64_t width : {1, 2, 5, 7, 13, 14, 15, 29}) {
        for (int64_t left = 0; left <= k / 2 + 1; ++left) {
          for (int64_t right = 0; right <= k / 2 + 1; ++right) {
            if (left + width + right < k) continue;
            ConvShape d = ConvOf({1, 16, k, width}, 16, k, stride, 1, {0, left}, {0, right});
            d.groups = 16;
            Run(d);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace bd
