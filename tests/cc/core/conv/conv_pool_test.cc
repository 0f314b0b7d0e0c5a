// Pooled results on every ISA: those of the convolution and a maximum after it, and of
// the definition (ConvRef) where sums are exact. Tensors sit in guarded buffers: an
// access beyond an end is a crash.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "cc/base/threads/thread_pool.h"
#include "cc/core/conv/conv.h"
#include "tests/cc/core/conv/conv_case.h"
#include "tests/cc/core/conv/conv_ref.h"
#include "tests/cc/guarded_buffer.h"
#include "tests/cc/isas.h"

namespace bd {
namespace {

constexpr char kRelu[] = "binary(add,channel,#0);eltwise(relu)";

ConvShape Pooled(ConvShape d) {
  d.pool_h = d.pool_w = 2;
  return d;
}

// Source, weights and operands of a convolution: #0 is a float a channel, #1 has the
// shape of the result before pooling.
struct Tensors {
  Tensors(const ConvShape& d, bool integers, GuardedBuffer::Guard guard)
      : src(SrcFloats(d), guard),
        weights(WeightFloats(d), guard),
        channel(d.oc, guard),
        tensor(ResultFloats(d), guard) {
    std::mt19937 rng(1);
    std::normal_distribution<float> normal;
    for (GuardedBuffer* x : {&src, &weights, &channel, &tensor}) {
      x->FillIntegers(static_cast<int64_t>(x->size()));
      if (!integers) std::generate(x->begin(), x->end(), [&] { return normal(rng); });
    }
    ClearSrcTail(d, src);
    ClearResultTail(d, tensor);
    args[0] = channel.data();
    args[1] = tensor.data();
  }
  GuardedBuffer src, weights, channel, tensor;
  const float* args[2];
};

void RunPlan(const ConvPlan& plan, const Tensors& tensors, GuardedBuffer* dst, ThreadPool& pool) {
  PackAndRun(plan, tensors.src.data(), tensors.weights.data(), tensors.args, dst->data(), pool);
}

// Maxima of a result before pooling.
std::vector<float> Maxima(const ConvShape& d, const GuardedBuffer& whole) {
  std::vector<float> result;
  for (int64_t b = 0; b < d.n * ((d.oc + 15) / 16); ++b) {
    for (int64_t y = 0; y < d.oh / 2; ++y) {
      for (int64_t i = 0; i < d.ow / 2 * 16; ++i) {
        const int64_t at = ((b * d.oh + 2 * y) * d.ow + i / 16 * 2) * 16 + i % 16;
        result.push_back(std::max(
            {whole[at], whole[at + 16], whole[at + d.ow * 16], whole[at + d.ow * 16 + 16]}));
      }
    }
  }
  return result;
}

class ConvPoolTest : public ::testing::TestWithParam<Isa> {
 protected:
  // `exact`: sums of small integers are, so that the definition has the same bits.
  void Run(const ConvShape& desc, bool exact) {
    for (ThreadPool* pool : {&one_, &two_}) {
      for (auto guard : {GuardedBuffer::kAtEnd, GuardedBuffer::kAtStart}) {
        Compare(desc, false, *pool, guard);
        if (exact) Compare(desc, true, *pool, guard);
      }
    }
  }

  void Compare(const ConvShape& desc, bool integers, ThreadPool& pool, GuardedBuffer::Guard guard) {
    const ConvShape pooled_desc = Pooled(desc);
    const ConvPlan plan = PlanOf(desc, GetParam(), pool.num_threads());
    const ConvPlan pooled = PlanOf(pooled_desc, GetParam(), pool.num_threads());
    SCOPED_TRACE(Describe(desc, pooled));
    const bool same = pooled.pack_key == plan.pack_key;  // else it was direct, which is exact only
    if (!same && !integers) return;
    seen_.insert(pooled.algorithm_name());
    const Tensors tensors(desc, integers, guard);
    GuardedBuffer whole(DstFloats(desc)), dst(DstFloats(pooled_desc), guard);
    RunPlan(plan, tensors, &whole, pool);
    RunPlan(pooled, tensors, &dst, pool);
    const std::vector<float> maxima = Maxima(desc, whole);
    ASSERT_TRUE(std::equal(maxima.begin(), maxima.end(), dst.begin(), dst.end()));
    if (!integers) return;
    GuardedBuffer expected(DstFloats(pooled_desc));
    ConvRef(pooled_desc, tensors.src.data(), tensors.weights.data(), tensors.args, expected.data());
    ASSERT_TRUE(std::equal(dst.begin(), dst.end(), expected.begin()));
  }

  ThreadPool one_{1}, two_{2};
  std::set<std::string> seen_;
};

INSTANTIATE_TEST_SUITE_P(Isas, ConvPoolTest, ::testing::ValuesIn(TestIsas()), IsaParam);

// Even and odd sizes, less than a tile, tiles over every edge, channel tails, batches.
TEST_P(ConvPoolTest, WinogradPoolsItsTiles) {
  const int64_t cases[][5] = {// n, ic, oc, ih, iw
                              {1, 16, 16, 4, 4},   {1, 20, 40, 7, 9},   {2, 32, 16, 13, 6},
                              {3, 64, 64, 8, 8},   {1, 16, 32, 30, 31}, {1, 128, 48, 5, 10},
                              {2, 16, 5, 2, 3},    {1, 48, 16, 57, 3},  {1, 37, 33, 17, 16},
                              {1, 512, 64, 14, 14}};
  for (const auto& [n, ic, oc, ih, iw] : cases) {
    for (const char* chain : {"", "binary(add,channel,#0)", kRelu, "eltwise(relu6)",
                              "binary(add,channel,#0);eltwise(clip,alpha=-3,beta=2)"}) {
      ConvShape d = Square(ic, ih, oc, 3, 1, 1);
      d.n = n;
      d.iw = d.ow = iw;
      d.algorithm = ConvAlgorithm::kWinograd;
      d.post_ops = Chain(chain);
      Run(d, false);
      if (ic > 64) break;
    }
  }
  ConvShape larger = Square(24, 19, 20, 5, 1, 2);
  larger.algorithm = ConvAlgorithm::kWinograd;
  larger.post_ops = Chain(kRelu);
  Run(larger, false);
  EXPECT_EQ(seen_, (std::set<std::string>{"winograd2x2", "winograd4x4"}));
}

// The factors of F(2x2, 3x3) are powers of two: integers stay exact.
TEST_P(ConvPoolTest, WinogradOfIntegers) {
  for (int64_t size : {2, 4, 7, 12}) {
    ConvShape d = Square(40, size, 24, 3, 1, 1);
    d.algorithm = ConvAlgorithm::kAutoSmall;
    d.n = 2;
    d.post_ops = Chain(kRelu);
    Run(d, true);
  }
  EXPECT_EQ(seen_.count("winograd2x2"), 1u);
}

// Larger than the caches: lines are asked for ahead.
TEST_P(ConvPoolTest, WinogradOfALargeTensor) {
  ConvShape d = Square(64, 225, 64, 3, 1, 1);
  d.iw = d.ow = 224;
  d.algorithm = ConvAlgorithm::kWinograd;
  d.post_ops = Chain(kRelu);
  Compare(d, false, two_, GuardedBuffer::kAtEnd);
  EXPECT_EQ(seen_, (std::set<std::string>{"winograd4x4"}));
}

// Tiles that windows straddle, other algorithms, chains that read tensors or are no clamp.
TEST_P(ConvPoolTest, DeclinesWhatTilesDoNotHold) {
  const auto declines = [&](ConvShape d) {
    ConvPlan plan;
    EXPECT_NE(MakeConvPlan(Pooled(d), GetParam(), 2, &plan).find("use an op of its own"),
              std::string::npos);
  };
  for (const auto& [kh, kw] : {std::pair<int64_t, int64_t>{1, 3}, {3, 1}, {7, 1}, {1, 1}}) {
    declines(ConvOf({1, 16, 9, 9}, 20, {kh, kw}));
  }
  for (const char* chain :
       {"sum(#1);eltwise(relu)", "eltwise(swish)", "eltwise(abs)",
        "binary(add,channel,#0);eltwise(relu);binary(mul,channel,#0)",
        "eltwise(clip,alpha=1,beta=3)", "eltwise(relu);binary(max,tensor,#1)"}) {
    ConvShape d = Square(16, 9, 20, 3, 1, 1);
    d.post_ops = Chain(chain);
    declines(d);
  }
  ConvShape first = Square(3, 30, 20, 7, 2, 3);
  first.src_layout = Layout::nhwc;
  declines(first);
  ConvShape grouped = Square(16, 9, 32, 3, 1, 1);
  grouped.groups = 2;
  declines(grouped);
  ConvShape direct = Square(16, 9, 32, 3, 1, 1);
  direct.algorithm = ConvAlgorithm::kDirect;
  declines(direct);
}

TEST_P(ConvPoolTest, ResultsWithoutAWindowAreEmpty) {
  for (const auto& [h, w] : {std::pair<int64_t, int64_t>{1, 6}, {6, 1}, {1, 1}, {0, 6}}) {
    ConvShape d = Square(16, h, 16, 3, 1, 1);
    d.iw = d.ow = w;
    d.algorithm = ConvAlgorithm::kWinograd;
    Run(d, true);
  }
}

TEST(ConvPoolPlanTest, ErrorsNameTheRemedy) {
  ConvPlan plan;
  ConvShape d = Square(16, 8, 16, 3, 1, 1);
  d.pool_h = 3;
  EXPECT_EQ(MakeConvPlan(d, Isa::kGeneric, 1, &plan),
            "a convolution pools windows of 2x2, not of 3x1; use an op of its own");
  d = Pooled(Square(16, 8, 16, 3, 1, 1));
  d.dst_layout = Layout::nhwc;
  EXPECT_EQ(MakeConvPlan(d, Isa::kGeneric, 1, &plan), "a pooled result is nChw16c; add a reorder");
  d.dst_layout = Layout::nChw16c;
  d.post_ops = Chain("sum()");
  EXPECT_EQ(MakeConvPlan(d, Isa::kGeneric, 1, &plan),
            "the previous dst of a sum is pooled already; name an operand");
}

}  // namespace
}  // namespace bd
