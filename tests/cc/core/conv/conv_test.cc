// Convolution on every ISA against its definition: what all algorithms of products share, and
// depthwise.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>

#include "cc/core/conv/direct/direct.h"
#include "tests/cc/core/conv/conv_check.h"
#include "tests/cc/isas.h"

namespace bd {
namespace {

INSTANTIATE_TEST_SUITE_P(Isas, ConvTest, ::testing::ValuesIn(TestIsas()), IsaParam);

TEST_P(ConvTest, PointwiseReadsSourceInPlace) {
  for (int64_t ic : {16, 24, 64, 100}) {
    for (int64_t oc : {16, 48, 50}) {
      for (int64_t size : {1, 5, 14}) Run(Square(ic, size, oc, 1, 1, 0));
    }
  }
}

TEST_P(ConvTest, LastBlockWithAtMostHalfItsChannels) {
  for (int64_t oc : {5, 8, 24, 40}) {
    for (int64_t width = 1; width <= 15; ++width) {
      for (auto [ic, kernel] : {std::pair<int64_t, int64_t>{20, 1}, {52, 1}, {20, 3}}) {
        ConvShape d = Square(ic, width, oc, kernel, 1, kernel / 2);
        d.ih = d.oh = 3;
        d.algorithm = ConvAlgorithm::kDirect;
        d.post_ops = Chain("binary(add,channel,#0);sum(#1,scale=2);eltwise(relu)");
        Run(d);
      }
    }
  }
}

// What lies behind the last channel stays zero whatever the source holds: infinity times the zeros
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

TEST_P(ConvTest, StridesDilationsAndAsymmetricPadding) {
  for (int64_t stride : {1, 2, 3}) {
    for (int64_t dilation : {1, 2}) {
      ConvShape d = ConvOf({2, 20, 13, 11}, 33, {3, 5}, {stride, 4 - stride},
                           {dilation, 3 - dilation}, {1, 3}, {2, 0});
      d.algorithm = ConvAlgorithm::kDirect;
      Run(d);
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

TEST_P(ConvTest, PaddingLargerThanTheSource) {
  ConvShape d = Square(16, 2, 16, 3, 1, 0);
  d.pad_top = d.pad_left = 5;
  d.oh = d.ow = 9;
  d.algorithm = ConvAlgorithm::kDirect;
  Run(d);
  d.src_layout = Layout::nhwc;
  Run(d);
}

TEST_P(ConvTest, DeepSourcesRunInChunks) {
  ConvShape d = Square(400, 6, 40, 3, 1, 1);
  d.algorithm = ConvAlgorithm::kDirect;
  Run(d);
  d.post_ops = Chain("binary(add,channel,#0);sum(#1);eltwise(relu)");
  Run(d);
  d.post_ops = Chain("eltwise(square);sum(#1,scale=2)");  // one chunk: sum comes late
  d.ic = 64;
  Run(d);
}

// Tiles of few pixels multiply a part of K at a time; a sum behind the activation reads dst
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

TEST_P(ConvTest, FirstLayersReadNhwc) {
  for (int64_t ic : {1, 2, 3, 4, 17}) {
    ConvShape d = Square(ic, 15, 20, 7, 2, 3);
    d.src_layout = Layout::nhwc;
    d.algorithm = ConvAlgorithm::kDirect;
    d.post_ops = Chain("binary(add,channel,#0);eltwise(relu)");
    Run(d);
    d.dw = 2;  // taps of one pixel
    d.ow -= 3;
    Run(d);
  }
}

// Rows of many tiles, of which only the outer ones see padding: on both sides, on one, or
// none; kernel rows that never see the image.
TEST_P(ConvTest, RowsOfAnImageAreReadInPlace) {
  for (int64_t stride : {1, 2, 3}) {
    for (int64_t pad : {0, 1, 4}) {
      ConvShape d = Square(3, 45, 40, 3, stride, pad);
      d.src_layout = Layout::nhwc;
      d.algorithm = ConvAlgorithm::kDirect;
      d.post_ops = Chain("binary(add,channel,#0);sum(#1);eltwise(relu6)");
      Run(d);
      d.pad_left = 0;  // all of it on the right
      d.post_ops = Chain("eltwise(square)");
      Run(d);
    }
  }
}

TEST_P(ConvTest, PlainDst) {
  for (int64_t oc : {1, 2, 4, 5, 16, 70}) {
    for (int64_t k : {1, 3}) {
      ConvShape d = Square(40, 9, oc, k, 1, k / 2);
      d.dst_layout = Layout::nhwc;
      d.algorithm = ConvAlgorithm::kDirect;
      Run(d);
      d.post_ops = Chain("binary(add,channel,#0);sum(#1);eltwise(relu);binary(max,tensor,#2)");
      Run(d);
      d.src_layout = Layout::nhwc;
      Run(d);
    }
  }
}

// Rows as pixels; with few of them the weights are read as they are.
TEST_P(ConvTest, InnerProduct) {
  for (int64_t rows : {1, 3, 6, 14, 40}) {
    for (int64_t ic : {5, 16, 300}) {
      for (int64_t oc : {32, 40, 192}) {
        ConvShape d = ConvOf({1, ic, 1, rows}, oc, 1);
        d.src_layout = d.dst_layout = Layout::nhwc;
        d.post_ops = Chain("binary(add,channel,#0);sum(#1);eltwise(relu)");
        for (bool keeps : {false, true}) {
          d.keeps_weights = keeps;
          Run(d);
        }
      }
    }
  }
}

TEST_P(ConvTest, GroupsThatStraddleBlocks) {
  const int64_t cases[][3] = {// groups, ic a group, oc a group
                              {2, 16, 16}, {3, 24, 40}, {32, 4, 4}, {5, 7, 3},
                              {24, 1, 2},  {6, 1, 5},   {2, 40, 8}, {1, 1, 1}};
  for (const auto& [groups, ic, oc] : cases) {
    ConvShape d = Square(groups * ic, 7, groups * oc, 3, 1, 1);
    d.groups = groups;
    d.algorithm = ConvAlgorithm::kDirect;
    Run(d);
    d.src_layout = Layout::nhwc;
    Run(d);
    d.src_layout = Layout::nChw16c;
    d.dst_layout = Layout::nhwc;
    Run(d);
  }
}

TEST_P(ConvTest, ChainsInAnyOrder) {
  for (const char* text :
       {"eltwise(relu)", "binary(add,channel,#0)", "sum(#1)", "sum(#1,scale=-2)",
        "binary(add,channel,#0);sum(#1);eltwise(relu6)", "binary(add,tensor,#2);eltwise(relu)",
        "sum(#1);binary(add,channel,#0)", "eltwise(linear,alpha=2,beta=1)",
        "binary(mul,channel,#0);sum(#1);eltwise(abs);binary(sub,tensor,#2)",
        "eltwise(clip,alpha=1,beta=3)", "eltwise(relu);eltwise(linear,alpha=1,beta=3)"}) {
    for (int64_t oc : {32, 37}) {
      for (ConvAlgorithm algorithm : {ConvAlgorithm::kDirect, ConvAlgorithm::kWinograd}) {
        ConvShape d = Square(16, 8, oc, 3, 1, 1);
        d.n = 2;
        d.algorithm = algorithm;
        d.post_ops = Chain(text);
        Run(d, algorithm == ConvAlgorithm::kWinograd ? 2e-5 : 0);
      }
      ConvShape d = Square(oc, 8, oc, 3, 1, 1);
      d.groups = oc;
      d.post_ops = Chain(text);
      Run(d);
    }
  }
}

TEST_P(ConvTest, RandomShapes) {
  std::mt19937 rng(1);
  auto pick = [&](int low, int high) {
    return low + static_cast<int64_t>(rng() % (high - low + 1));
  };
  for (int i = 0; i < 400; ++i) {
    ConvShape d;
    d.n = pick(1, 3);
    d.groups = pick(0, 2) > 0 ? 1 : pick(2, 6);
    d.ic = d.groups * pick(1, 40);
    d.oc = d.groups * pick(1, 40);
    d.kh = pick(1, 5);
    d.kw = pick(1, 5);
    d.sh = pick(1, 3);
    d.sw = pick(1, 3);
    d.dh = pick(1, 2);
    d.dw = pick(1, 2);
    d.pad_top = pick(0, 3);
    d.pad_left = pick(0, 3);
    d.oh = pick(1, 9);
    d.ow = pick(1, 30);
    // The smallest source these outputs need, less some that counts as padding.
    d.ih = std::max<int64_t>(1, (d.oh - 1) * d.sh + (d.kh - 1) * d.dh + 1 - d.pad_top - pick(0, 2));
    d.iw =
        std::max<int64_t>(1, (d.ow - 1) * d.sw + (d.kw - 1) * d.dw + 1 - d.pad_left - pick(0, 2));
    if (pick(0, 3) == 0) d.src_layout = Layout::nhwc;
    if (pick(0, 3) == 0) d.dst_layout = Layout::nhwc;
    d.algorithm = ConvAlgorithm::kDirect;
    CheckConv(d, GetParam(), pick(0, 1) ? one_ : two_, 0);
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

TEST_P(ConvTest, DepthwiseRows) {
  for (int64_t k : {1, 3, 5, 7}) {
    for (int64_t stride : {1, 2, 3}) {
      for (int64_t size : {1, 4, 17, 33}) {
        ConvShape d = Square(40, size, 40, k, stride, k / 2);
        d.groups = 40;
        d.n = 2;
        d.post_ops = Chain("binary(add,channel,#0);eltwise(relu6)");
        Run(d);
      }
    }
  }
}

// Windows that end before, at and behind either end of a row.
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
