// Convolutions of bfloat16 and of bytes on every ISA, in guarded memory. Every algorithm that the
// plan may choose is held to the same definition.
#include <set>
#include <string>

#include "cc/core/conv/conv.h"
#include "tests/cc/core/conv/low_precision/low_precision_case.h"

namespace bd {
namespace {

INSTANTIATE_TEST_SUITE_P(Isas, ConvLowPrecisionTest, ::testing::ValuesIn(TestIsasOfBytes()),
                         IsaParam);

// Padding is the zero point; a zero in its place shows wherever a window reaches beyond the plane.
TEST_P(ConvLowPrecisionTest, DrawnShapes) {
  constexpr int kZeroPoints[] = {0, 3, 128, 201, 255};
  constexpr const char* kChains[] = {"", "", "eltwise(relu)", "eltwise(clip,alpha=-3,beta=6)",
                                     "binary(mul,channel,#0);eltwise(leaky_relu,alpha=0.25)"};
  for (int i = 0; i < 500; ++i) {
    LowPrecisionCase c;
    c.shape = DrawnShape(rng_);
    c.src = rng_() % 2 ? u8 : bf16;
    c.dst = kDstTypes[rng_() % 3];
    c.floats = rng_() % 5 ? bf16 : f32;
    c.src_quantization.zero_point = kZeroPoints[rng_() % 5];
    c.dst_quantization.zero_point = kZeroPoints[rng_() % 5];
    c.bias = rng_() % 2;
    c.adds = rng_() % 3 == 0;
    if (c.shape.dst_layout != Layout::nhwc) c.sum = kDstTypes[rng_() % 3];
    if (!c.adds) c.sum = f32;
    c.rest = kChains[rng_() % 5];
    Check(c, rng_() % 2 ? one_ : two_, rng_() % 2 ? Guard::kAtEnd : Guard::kAtStart);
  }
  EXPECT_EQ(algorithms_, std::set<std::string>({"depthwise", "direct", "direct_plain", "gemm"}));
}

// Near zero and far from it, where swish goes other ways.
TEST_P(ConvLowPrecisionTest, Swish) {
  for (bool depthwise : {false, true}) {
    for (int64_t channels : {16, 20, 40}) {
      for (int64_t size : {3, 7, 17}) {
        for (int weight : {1, 127}) {
          LowPrecisionCase c;
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
TEST_P(ConvLowPrecisionTest, LargestDepthwiseSums) {
  LowPrecisionCase c;
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

TEST_P(ConvLowPrecisionTest, ChainsAndTypes) {
  for (DataType src : {u8, bf16}) {
    ForChainsAndTypes([&](LowPrecisionCase c) {
      c.src = src;
      Check(c, two_);
    });
  }
  // Products of matrices add any type, too.
  for (DataType sum : kDstTypes) {
    LowPrecisionCase c;
    c.shape = Square(20, 8, 37, 1, 1, 0);
    c.shape.src_layout = c.shape.dst_layout = Layout::nhwc;
    c.sum = sum;
    c.bias = c.adds = true;
    c.rest = "eltwise(relu)";
    Check(c, two_);
  }
}

TEST_P(ConvLowPrecisionTest, LargestSums) {
  for (int weight : {127, -127}) {
    LowPrecisionCase c;
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
TEST_P(ConvLowPrecisionTest, ClampsAndBytes) {
  for (const char* rest :
       {"eltwise(clip,alpha=-1000,beta=7)", "eltwise(clip,alpha=5,beta=5000)",
        "eltwise(clip,alpha=3000,beta=5000)", "eltwise(relu)",
        "eltwise(clip,alpha=-9000,beta=-8000)", "eltwise(clip,alpha=2,beta=2)"}) {
    for (int64_t oc : {16, 21}) {
      for (bool depthwise : {false, true}) {
        LowPrecisionCase c;
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
TEST_P(ConvLowPrecisionTest, SumsOfBytesAndFineSteps) {
  for (const char* rest : {"", "eltwise(relu)", "eltwise(clip,alpha=-3,beta=6)"}) {
    for (float step : {3.7f, 1e-3f, 1e-9f, 1e-30f}) {
      for (bool depthwise : {false, true}) {
        LowPrecisionCase c;
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

TEST_P(ConvLowPrecisionTest, LargerPlanes) {
  LowPrecisionCase c;
  c.shape = Square(80, 16, 96, 3, 1, 1);
  c.bias = true;
  c.rest = "eltwise(relu)";
  if (GetParam() >= Isa::kAvx2) CheckTypes(c);
  c.shape = Square(160, 14, 80, 1, 1, 0);
  CheckTypes(c);
  c.shape = Square(48, 29, 64, 1, 2, 0);
  CheckTypes(c);
}

TEST(ConvLowPrecisionPlanTest, OtherAlgorithmsSayWhyNot) {
  LowPrecisionCase c;
  c.shape = Square(64, 14, 64, 3, 1, 1);
  std::set<std::string> low_precision;
  for (const Algorithm& a : ConvAlgorithms()) {
    const std::string reason = WhyNot(a, c.Desc(), Isa::kAvx512);
    if (reason != "src is not float32") low_precision.insert(a.name);
  }
  for (const char* name : {"depthwise", "direct", "direct_plain", "gemm"}) {
    EXPECT_EQ(low_precision.erase(name), 1u) << name;
  }
  for (const std::string& name : low_precision) EXPECT_EQ(name.rfind("winograd", 0), 0u) << name;
}

TEST(ConvLowPrecisionPlanTest, ErrorsNameTheTypes) {
  const auto error_of = [](const LowPrecisionCase& c, DataType weights) {
    ConvPlan plan;
    ConvDesc d = c.Desc();
    d.types.weights = weights;
    return MakeConvPlan(d, Isa::kGeneric, 1, &plan);
  };
  LowPrecisionCase c;
  c.shape = Square(16, 4, 16, 3, 1, 1);
  EXPECT_EQ(error_of(c, DataType::s8), "");
  EXPECT_NE(error_of(c, f32).find("uint8 with int8 weights, not uint8 nChw16c"), std::string::npos);
  c.dst = DataType::s32;
  EXPECT_EQ(error_of(c, DataType::s8), "a convolution of uint8 neither stores nor adds int32");
  c.dst = u8;
  c.src_quantization.zero_point = 256;
  EXPECT_EQ(error_of(c, DataType::s8),
            "the quantization of src has zero point 256, which is no number of type uint8");
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
