// src and dst as parts of wider tensors: the same bits as with tensors of their own, in
// every form, and nothing read or written beside them.
#include <vector>

#include "tests/cc/core/conv/conv_case.h"
#include "tests/cc/isas.h"

namespace bd {
namespace {

// An image of a part lies `before` blocks into one of before + blocks + after.
struct Place {
  int64_t before, blocks, after;

  int64_t image_blocks() const { return before + blocks + after; }
};

// The part's floats in the wider tensor; everything else stays as it is.
template <typename Fn>
void ForPart(const Place& place, int64_t n, int64_t plane, Fn&& each) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t f = 0; f < place.blocks * plane * 16; ++f) {
      each(i * place.blocks * plane * 16 + f,
           (i * place.image_blocks() + place.before) * plane * 16 + f);
    }
  }
}

void Check(ConvShape d, Isa isa, ThreadPool& pool, const char* algorithm) {
  ConvPlan whole, part;
  ASSERT_EQ(MakeConvPlan(d, isa, pool.num_threads(), &whole), "");
  SCOPED_TRACE(Describe(d, whole));
  ASSERT_STREQ(whole.algorithm_name(), algorithm);
  const bool plain_dst = d.dst_layout == Layout::nhwc;
  const Place from = {1, whole.icb, 2}, to = {2, whole.ocb, 1};
  d.src_image_blocks = from.image_blocks();
  if (!plain_dst) d.dst_image_blocks = to.image_blocks();
  ASSERT_EQ(MakeConvPlan(d, isa, pool.num_threads(), &part), "");

  const int64_t src_plane = d.ih * d.iw, dst_plane = d.dst_h() * d.dst_w();
  GuardedBuffer src(d.n * whole.icb * src_plane * 16);
  src.FillIntegers(1);
  ClearSrcTail(d, src);
  GuardedBuffer wide_src(d.n * from.image_blocks() * src_plane * 16);  // NaN beside the part
  ForPart(from, d.n, src_plane, [&](int64_t i, int64_t at) { wide_src[at] = src[i]; });

  GuardedBuffer weights(WeightFloats(d)), bias(d.oc);
  weights.FillIntegers(2);
  bias.FillIntegers(3);
  GuardedBuffer tensor(ResultFloats(d));
  tensor.FillIntegers(4);
  if (!plain_dst) ClearResultTail(d, tensor);
  const float* args[] = {bias.data(), tensor.data()};
  ASSERT_EQ(part.packed_floats(), whole.packed_floats());
  ASSERT_EQ(part.scratch.bytes(), whole.scratch.bytes());

  GuardedBuffer expected(DstFloats(d));
  PackAndRun(whole, src.data(), weights.data(), args, expected.data(), pool);

  const int64_t size = plain_dst ? expected.size() : d.n * to.image_blocks() * dst_plane * 16;
  GuardedBuffer wide_dst(size);
  wide_dst.Fill(77.f);
  float* const part_dst = wide_dst.data() + (plain_dst ? 0 : to.before * dst_plane * 16);
  PackAndRun(part, wide_src.data() + from.before * src_plane * 16, weights.data(), args, part_dst,
             pool);
  if (plain_dst) {
    for (int64_t i = 0; i < size; ++i) ASSERT_EQ(wide_dst[i], expected[i]) << "at " << i;
    return;
  }
  ForPart(to, d.n, dst_plane, [&](int64_t i, int64_t at) {
    ASSERT_EQ(wide_dst[at], expected[i]) << "at " << i;
    wide_dst[at] = 77.f;
  });
  for (float beside : wide_dst) ASSERT_EQ(beside, 77.f);
}

class ConvPart : public testing::TestWithParam<Isa> {
 protected:
  void CheckChains(ConvShape d, const char* algorithm) {
    d.n = 2;
    for (const char* chain : {"", "binary(add,channel,#0);sum(#1);eltwise(relu)",
                              "sum(#1,scale=0.5);binary(mul,channel,#0);eltwise(abs)"}) {
      d.post_ops = Chain(chain);
      Check(d, GetParam(), pool_, algorithm);
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
    ConvPlan plan;
    d.algorithm = algorithm;
    ASSERT_EQ(MakeConvPlan(d, GetParam(), 2, &plan), "");
    CheckChains(d, plan.algorithm_name());
  }
  d.algorithm = ConvAlgorithm::kWinograd;
  d.kh = 1;
  d.pad_top = 0;
  CheckChains(d, "winograd1x4");
}

TEST_P(ConvPart, Pooled) {
  ConvShape d = Square(32, 13, 32, 3, 1, 1);
  d.n = 2;
  d.pool_h = d.pool_w = 2;
  for (const char* chain : {"", "binary(add,channel,#0);eltwise(relu)"}) {
    d.post_ops = Chain(chain);
    ConvPlan plan;
    ASSERT_EQ(MakeConvPlan(d, GetParam(), 2, &plan), "");
    Check(d, GetParam(), pool_, plan.algorithm_name());
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
