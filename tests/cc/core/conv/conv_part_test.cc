// src and dst as parts of wider tensors, in every form: nothing is read or written beside them.
#include "tests/cc/core/conv/conv_check.h"
#include "tests/cc/isas.h"

namespace bd {
namespace {

class ConvPart : public testing::TestWithParam<Isa> {
 protected:
  void CheckChains(ConvShape d, const char* algorithm, double bound = 0) {
    d.n = 2;
    for (const char* chain : {"", "binary(add,channel,#0);sum(#1);eltwise(relu)",
                              "sum(#1,scale=0.5);binary(mul,channel,#0);eltwise(abs)"}) {
      d.post_ops = Chain(chain);
      Check(d, algorithm, bound);
    }
  }

  void Check(const ConvShape& d, const char* algorithm, double bound) {
    const ConvPlan whole = PlanOf(d, GetParam());
    ASSERT_STREQ(whole.algorithm_name(), algorithm);
    ConvShape part = d;
    part.src_image_blocks = whole.icb + 3;
    if (d.dst_layout != Layout::nhwc) part.dst_image_blocks = whole.ocb + 2;
    const ConvPlan plan = PlanOf(part, GetParam());
    ASSERT_EQ(plan.packed_floats(), whole.packed_floats());
    ASSERT_EQ(plan.scratch.bytes(), whole.scratch.bytes());
    for (auto guard : {GuardedBuffer::kAtStart, GuardedBuffer::kAtEnd}) {
      CheckConv(part, GetParam(), pool_, bound, guard);
    }
  }

  ThreadPool pool_{2};
};

INSTANTIATE_TEST_SUITE_P(Isas, ConvPart, testing::ValuesIn(TestIsas()), IsaParam);

TEST_P(ConvPart, Pointwise) {
  for (ConvShape d :
       {Square(32, 7, 48, 1, 1, 0), Square(37, 6, 20, 1, 1, 0),  // tails on both sides
        Square(2048, 3, 40, 1, 1, 0),                            // several K chunks
        Square(32, 32, 16, 1, 2, 0)}) {                          // strided in place
    d.algorithm = ConvAlgorithm::kDirect;
    CheckChains(d, "direct");
    d.algorithm = ConvAlgorithm::kFip;
    CheckChains(d, GetParam() == Isa::kAvx512 ? "paired" : "direct");
  }
}

TEST_P(ConvPart, Window) {
  ConvShape d = Square(32, 9, 32, 3, 1, 1);
  d.algorithm = ConvAlgorithm::kDirect;
  CheckChains(d, "direct");
  ConvShape strided = Square(20, 9, 24, 3, 2, 1);
  strided.algorithm = ConvAlgorithm::kDirect;
  CheckChains(strided, "direct");
  ConvShape grouped = Square(64, 6, 64, 3, 1, 1);
  grouped.groups = 4;
  CheckChains(grouped, "direct");
}

TEST_P(ConvPart, Depthwise) {
  for (int64_t stride : {1, 2}) {
    ConvShape d = Square(40, 9, 40, 3, stride, 1);
    d.groups = 40;
    CheckChains(d, "depthwise");
  }
}

TEST_P(ConvPart, Winograd) {
  ConvShape d = Square(32, 13, 32, 3, 1, 1);
  for (ConvAlgorithm algorithm : {ConvAlgorithm::kWinograd, ConvAlgorithm::kAutoSmall}) {
    d.algorithm = algorithm;
    CheckChains(d, PlanOf(d, GetParam()).algorithm_name(), 2e-5);
  }
  d.algorithm = ConvAlgorithm::kWinograd;
  d.kh = 1;
  d.pad_top = 0;
  CheckChains(d, "winograd1x4", 2e-5);
}

TEST_P(ConvPart, Pooled) {
  ConvShape d = Square(32, 13, 32, 3, 1, 1);
  d.n = 2;
  d.pool_h = d.pool_w = 2;
  for (const char* chain : {"", "binary(add,channel,#0);eltwise(relu)"}) {
    d.post_ops = Chain(chain);
    Check(d, PlanOf(d, GetParam()).algorithm_name(), 2e-5);
  }
}

TEST_P(ConvPart, PlainDst) {
  ConvShape d = Square(32, 7, 20, 3, 1, 1);
  d.dst_layout = Layout::nhwc;
  d.algorithm = ConvAlgorithm::kDirect;
  CheckChains(d, "direct");
  d.oc = 3;
  CheckChains(d, "dot");
}

TEST(ConvPartPlan, SaysWhatCannotBe) {
  ConvPlan plan;
  ConvShape d = Square(16, 4, 16, 1, 1, 0);
  d.dst_image_blocks = 2;
  d.post_ops = Chain("sum()");
  EXPECT_NE(MakeConvPlan(d, Isa::kGeneric, 1, &plan).find("give it an operand"), std::string::npos);
  d.post_ops = {};
  d.dst_layout = Layout::nhwc;
  EXPECT_NE(MakeConvPlan(d, Isa::kGeneric, 1, &plan).find("add a reorder"), std::string::npos);
}

}  // namespace
}  // namespace bd
