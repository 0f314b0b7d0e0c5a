// Convolutions of bfloat16 and of bytes over an NHWC source of few channels, whose kernel rows are
// no whole dwords.
#include <limits>
#include <string>

#include "tests/cc/core/conv/low_precision/low_precision_case.h"

namespace bd {
namespace {

INSTANTIATE_TEST_SUITE_P(Isas, ConvLowPrecisionTest, ::testing::ValuesIn(TestIsasOfBytes()),
                         IsaParam);

ConvShape Window(int64_t ic, int64_t oc, int64_t kw, int64_t sw, int64_t dw, int64_t pad) {
  ConvShape d = ConvOf({2, ic, 6, 17}, oc, {3, kw}, {1, sw}, {1, dw}, pad, pad);
  d.src_layout = Layout::nhwc;
  return d;
}

// A plane of one row, of which strips are any pixels, and of one column, which is run as that.
TEST_P(ConvLowPrecisionTest, Lines) {
  for (int64_t ic : {1, 3, 9}) {
    for (int64_t kw : {4, 5}) {
      for (int64_t sw : {1, 3}) {
        for (int64_t dw : {1, 50}) {
          const ConvShape row =
              ConvOf({2, ic, 1, 2000}, 20, {1, kw}, {1, sw}, {1, dw}, {0, 2}, {0, 2});
          const ConvShape column =
              ConvOf({2, ic, 2000, 1}, 20, {kw, 1}, {sw, 1}, {dw, 1}, {2, 0}, {2, 0});
          for (const ConvShape& line : {row, column}) {
            LowPrecisionCase c;
            c.shape = line;
            c.shape.src_layout = Layout::nhwc;
            c.src_quantization.zero_point = 201;
            CheckTypes(c);
          }
        }
      }
    }
  }
  EXPECT_EQ(algorithms_, std::set<std::string>({"direct_plain"}));
}

// What is beside a window does not reach its result, though dwords end beyond it.
TEST_P(ConvLowPrecisionTest, InfiniteNeighboursOfWindows) {
  for (int64_t ic : {1, 3, 5}) {
    for (int64_t kw : {1, 3, 4}) {
      for (int64_t dw : {1, 2}) {
        LowPrecisionCase c;
        c.shape = Window(ic, 16, kw, 1, dw, 1);
        c.src = bf16;
        c.dst = f32;
        const ConvDesc d = c.Desc();
        ConvPlan plan;
        ASSERT_EQ(MakeConvPlan(d, GetParam(), 1, &plan), "");
        GuardedArray src(d.src.bytes()), dst(d.dst.bytes()), weights(WeightFloats(c.shape) * 2);
        FillDrawn(rng_, bf16, WeightFloats(c.shape), 1, 8, weights.data());
        const std::vector<float> weight_integers =
            Integers(bf16, 0, weights.data(), WeightFloats(c.shape));
        for (int64_t y = 0; y < d.ih(); ++y) {
          const int64_t x = (5 * y + 2) % d.iw(), channel = y % ic;
          FillTensor(d.src, Quantization(), -8, 8, src.data());
          const float inf = std::numeric_limits<float>::infinity();
          StoreFloatRef(bf16, inf, src.data(), d.src.element(1, channel, y * d.iw() + x));
          PackAndRun(plan, src.data(), weights.data(), nullptr, dst.data(), one_);
          const std::vector<float> src_integers = Integers(bf16, 0, src.data(), d.src.elements());
          for (int64_t p = 0; p < d.n() * d.oh() * d.ow(); ++p) {
            const int64_t n = p / (d.oh() * d.ow()), oh = p / d.ow() % d.oh(), ow = p % d.ow();
            const int64_t row = y + 1 - oh, column = x + 1 - ow;
            const bool sees = n == 1 && row >= 0 && row < d.kh() && column >= 0 &&
                              column % dw == 0 && column / dw < kw;
            const int64_t at = d.dst.element(n, 3, oh * d.ow() + ow);
            const double due =
                sees ? inf : SumsRef(d, src_integers.data(), weight_integers.data(), n, oh, ow)[3];
            ASSERT_EQ(dst.As<float>()[at], due)
                << Describe(c.shape, plan) << " row " << y << " at " << oh << ", " << ow;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace bd
