// Convolutions of bfloat16 and of bytes on every ISA, in guarded memory. Every algorithm that the
// plan may choose is held to the same definition.
#include <set>
#include <string>

#include "cc/core/conv/conv.h"
#include "tests/cc/core/conv/narrow/narrow_case.h"

namespace bd {
namespace {

INSTANTIATE_TEST_SUITE_P(Isas, ConvNarrowTest, ::testing::ValuesIn(TestIsasOfBytes()), IsaParam);

// Channels around dwords, blocks and panels, planes around tiles.
TEST_P(ConvNarrowTest, Tails) {
  for (int64_t ic : {1, 2, 3, 16, 20, 33}) {
    for (int64_t oc : {1, 7, 16, 40}) {
      for (int64_t k : {1, 3}) {
        NarrowCase c;
        c.shape = Square(ic, 7, oc, k, 1, k / 2);
        c.bias = oc % 2 == 0;
        CheckTypes(c);
      }
    }
  }
  EXPECT_EQ(algorithms_, std::set<std::string>({"depthwise", "direct"}));
}

TEST_P(ConvNarrowTest, Layouts) {
  for (Layout src : {Layout::nhwc, Layout::nChw16c}) {
    for (Layout dst : {Layout::nhwc, Layout::nChw16c}) {
      for (int64_t ic : {3, 8, 19, 32}) {
        for (int64_t oc : {2, 21, 64}) {
          for (int64_t k : {1, 3}) {
            for (int64_t stride : {1, 2}) {
              NarrowCase c;
              c.shape = Square(ic, 9, oc, k, stride, k / 2);
              c.shape.src_layout = src;
              c.shape.dst_layout = dst;
              c.bias = true;
              if (oc == 21) c.rest = "eltwise(relu)";
              CheckTypes(c);
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(algorithms_, std::set<std::string>({"direct", "direct_plain", "gemm"}));
}

// Strides, dilation, padding of either side by more than a window, and first layers.
TEST_P(ConvNarrowTest, Windows) {
  for (int64_t ic : {3, 24}) {
    for (Layout layout : {Layout::nhwc, Layout::nChw16c}) {
      for (int64_t s : {1, 2, 3}) {
        for (int64_t dilation : {1, 2}) {
          for (int64_t pad : {0, 1, 4}) {
            NarrowCase c;
            c.shape = ConvOf({2, ic, 11, 15}, 20, {3, 2}, {s, std::max<int64_t>(1, 3 - s)},
                             {dilation, 3 - dilation}, {pad, pad / 2}, {1, 3});
            c.shape.src_layout = layout;
            c.bias = true;
            CheckTypes(c);
          }
        }
      }
    }
  }
  for (int64_t k : {3, 7}) {
    NarrowCase c;
    c.shape = Square(3, 33, 32, k, 2, k / 2);
    c.shape.src_layout = Layout::nhwc;
    CheckTypes(c);
  }
}

TEST_P(ConvNarrowTest, Groups) {
  for (int64_t groups : {2, 3, 8}) {
    for (int64_t ic_group : {1, 4, 20}) {
      for (int64_t oc_group : {3, 32}) {
        for (Layout layout : {Layout::nhwc, Layout::nChw16c}) {
          NarrowCase c;
          c.shape = Square(groups * ic_group, 6, groups * oc_group, 3, 1, 1);
          c.shape.groups = groups;
          c.shape.src_layout = layout;
          c.bias = true;
          CheckTypes(c);
        }
      }
    }
  }
}

TEST_P(ConvNarrowTest, Depthwise) {
  for (int64_t channels : {2, 16, 20, 40}) {
    for (int64_t k : {1, 3, 4, 5}) {
      for (int64_t stride : {1, 2}) {
        for (int64_t dilation : {1, 2}) {
          NarrowCase c;
          c.shape = ConvOf({2, channels, 17, 17}, channels, k, stride, dilation, k / 2, k / 2);
          c.shape.groups = channels;
          c.bias = c.adds = k != 4;
          if (c.adds) c.sum = kDstTypes[k % 3];
          if (k == 5) c.rest = "eltwise(clip,alpha=-3,beta=6)";
          if (k == 3) c.rest = "binary(mul,channel,#0);eltwise(leaky_relu,alpha=0.25)";
          CheckTypes(c);
        }
      }
    }
  }
  EXPECT_EQ(algorithms_, std::set<std::string>({"depthwise"}));
}

// Rows of tiles and shorter ones, and padding by more than a window.
TEST_P(ConvNarrowTest, DepthwisePlanes) {
  for (int64_t size : {1, 2, 3, 6, 7, 8, 14, 15, 29}) {
    for (int64_t k : {2, 3, 5}) {
      for (int64_t stride : {1, 2}) {
        for (int64_t pad : {0, 1, 6}) {
          if (size + 2 * pad < k) continue;
          NarrowCase c;
          c.shape = Square(20, size, 20, k, stride, pad);
          c.shape.groups = 20;
          c.src_quantization.zero_point = 201;
          c.dst = kDstTypes[turn_++ % 3];
          c.rest = "eltwise(clip,alpha=-3,beta=6)";
          Check(c, turn_ % 2 == 0 ? one_ : two_, turn_ % 4 < 2 ? Guard::kAtEnd : Guard::kAtStart);
        }
      }
    }
  }
}

// Near zero and far from it, where swish goes other ways.
TEST_P(ConvNarrowTest, Swish) {
  for (bool depthwise : {false, true}) {
    for (int64_t channels : {16, 20, 40}) {
      for (int64_t size : {3, 7, 17}) {
        for (int weight : {1, 127}) {
          NarrowCase c;
          c.shape = Square(channels, size, channels, 3, 1, 1);
          c.shape.groups = depthwise ? channels : 1;
          c.bias = true;
          c.rest = "eltwise(swish)";
          c.src_quantization.zero_point = 128;
          c.weights_least = -weight;
          c.weights_most = weight;
          Check(c, turn_++ % 2 == 0 ? one_ : two_);
          c.dst_quantization.scale = 1e-9f;  // in steps of which sums are beyond int32
          Check(c, one_);
          c.src = c.dst = bf16;
          c.floats_most = weight == 1 ? 1 : 8;  // sums within reach of the short way, and beyond
          Check(c, two_);
        }
      }
    }
  }
}

// More products than floats count exactly.
TEST_P(ConvNarrowTest, LargestDepthwiseSums) {
  NarrowCase c;
  c.shape = Square(17, 31, 17, 31, 1, 0);
  c.shape.groups = 17;
  c.src_quantization = {1.f, 0};
  c.dst = f32;
  c.src_least = c.src_most = 255;
  for (int weight : {127, -127, -128}) {
    c.weights_least = c.weights_most = weight;
    Check(c, one_);
  }
}

TEST_P(ConvNarrowTest, ChainsAndTypes) {
  for (DataType src : {u8, bf16}) {
    ForChainsAndTypes([&](NarrowCase c) {
      c.src = src;
      Check(c, two_);
    });
  }
  // Products of matrices add any type, too.
  for (DataType sum : kDstTypes) {
    NarrowCase c;
    c.shape = Square(20, 8, 37, 1, 1, 0);
    c.shape.src_layout = c.shape.dst_layout = Layout::nhwc;
    c.sum = sum;
    c.bias = c.adds = true;
    c.rest = "eltwise(relu)";
    Check(c, two_);
  }
}

// Padding is the zero point; a zero in its place shows wherever a window reaches beyond the plane.
TEST_P(ConvNarrowTest, ZeroPoints) {
  for (int zero_point : {0, 3, 128, 255}) {
    for (Layout layout : {Layout::nhwc, Layout::nChw16c}) {
      for (int64_t stride : {1, 2}) {
        NarrowCase c;
        c.shape = Square(18, 6, 24, 3, stride, 1);
        c.shape.src_layout = layout;
        c.src_quantization.zero_point = c.dst_quantization.zero_point = zero_point;
        c.weights_least = c.weights_most = 5;  // constant
        Check(c, two_);
        c.weights_least = -127, c.weights_most = 127;
        Check(c, two_);
      }
    }
  }
}

TEST_P(ConvNarrowTest, LargestSums) {
  for (int weight : {127, -127}) {
    NarrowCase c;
    c.shape = Square(512, 3, 17, 3, 1, 1);
    c.dst = f32;
    c.src_quantization = {1.f, 0};
    c.src_least = c.src_most = 255;
    c.weights_least = c.weights_most = weight;
    Check(c, one_);
    c.src_quantization.zero_point = 255;
    c.src_least = c.src_most = 0;
    Check(c, one_);
  }
}

// Bounds of a chain beside those of bytes: within them, beyond one, beyond both, infinite.
TEST_P(ConvNarrowTest, ClampsAndBytes) {
  for (const char* rest :
       {"eltwise(clip,alpha=-1000,beta=7)", "eltwise(clip,alpha=5,beta=5000)",
        "eltwise(clip,alpha=3000,beta=5000)", "eltwise(relu)",
        "eltwise(clip,alpha=-9000,beta=-8000)", "eltwise(clip,alpha=2,beta=2)"}) {
    for (int64_t oc : {16, 21}) {
      for (bool depthwise : {false, true}) {
        NarrowCase c;
        c.shape = Square(oc, 8, oc, 3, 1, 1);
        c.shape.groups = depthwise ? oc : 1;
        c.rest = rest;
        c.bias = true;
        Check(c, two_);
      }
    }
  }
}

// Bytes of one more or less, and so fine that results are beyond int32 in their steps.
TEST_P(ConvNarrowTest, SumsOfBytesAndFineSteps) {
  for (const char* rest : {"", "eltwise(relu)", "eltwise(clip,alpha=-3,beta=6)"}) {
    for (float step : {3.7f, 1e-3f, 1e-9f, 1e-30f}) {
      for (bool depthwise : {false, true}) {
        NarrowCase c;
        c.shape = Square(32, 9, 32, 3, 1, 1);
        c.shape.groups = depthwise ? 32 : 1;
        c.dst_quantization = {step, 17};
        c.rest = rest;
        c.sum = u8;
        c.sum_scale = 1.f;
        c.bias = c.adds = true;
        Check(c, two_);
      }
    }
  }
}

// Weights that are floats are rounded to bfloat16.
TEST_P(ConvNarrowTest, FloatsAsWeightsOfBfloat16) {
  NarrowCase c;
  c.shape = Square(20, 5, 33, 3, 1, 1);
  c.src = bf16;
  c.floats = f32;
  for (DataType dst : kDstTypes) {
    c.dst = dst;
    Check(c, two_);
  }
}

TEST_P(ConvNarrowTest, LargerPlanes) {
  NarrowCase c;
  c.shape = Square(80, 16, 96, 3, 1, 1);
  c.bias = true;
  c.rest = "eltwise(relu)";
  if (GetParam() >= Isa::kAvx2) CheckTypes(c);
  c.shape = Square(160, 14, 80, 1, 1, 0);
  CheckTypes(c);
  c.shape = Square(48, 29, 64, 1, 2, 0);
  CheckTypes(c);
}

TEST(ConvNarrowPlanTest, OtherAlgorithmsSayWhyNot) {
  NarrowCase c;
  c.shape = Square(64, 14, 64, 3, 1, 1);
  std::set<std::string> narrow;
  for (const Algorithm& a : ConvAlgorithms()) {
    const std::string reason = WhyNot(a, c.Desc(), Isa::kAvx512);
    if (reason != "src is not float32") narrow.insert(a.name);
  }
  for (const char* name : {"depthwise", "direct", "direct_plain", "gemm"}) {
    EXPECT_EQ(narrow.erase(name), 1u) << name;
  }
  for (const std::string& name : narrow) EXPECT_EQ(name.rfind("winograd", 0), 0u) << name;
}

TEST(ConvNarrowPlanTest, ErrorsNameTheTypes) {
  const auto error_of = [](const NarrowCase& c, DataType weights) {
    ConvPlan plan;
    ConvDesc d = c.Desc();
    d.types.weights = weights;
    return MakeConvPlan(d, Isa::kGeneric, 1, &plan);
  };
  NarrowCase c;
  c.shape = Square(16, 4, 16, 3, 1, 1);
  EXPECT_EQ(error_of(c, DataType::s8), "");
  EXPECT_NE(error_of(c, f32).find("uint8 with int8 weights, not uint8 nChw16c"), std::string::npos);
  c.dst = DataType::s32;
  EXPECT_EQ(error_of(c, DataType::s8), "a convolution of uint8 neither stores nor adds int32");
  c.dst = u8;
  c.src_quantization.zero_point = 256;
  EXPECT_NE(error_of(c, DataType::s8).find("src is uint8 of scale"), std::string::npos);
  c.src_quantization.zero_point = 0;
  c.shape = Square(7376, 3, 16, 3, 1, 1);  // 9 * 7376 products
  EXPECT_EQ(error_of(c, DataType::s8),
            "sums of 66384 products of bytes may be no int32; at most 66311 are");
  c.shape = Square(16, 4, 16, 3, 1, 1);
  c.rest = "eltwise(relu);sum(scale=1)";
  EXPECT_NE(error_of(c, DataType::s8).find("give it an operand"), std::string::npos);
}

}  // namespace
}  // namespace bd
