#include "cc/core/squeeze_excite/squeeze_excite.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "tests/cc/core/squeeze_excite/squeeze_excite_ref.h"
#include "tests/cc/guarded_buffer.h"
#include "tests/cc/isas.h"

namespace bd {
namespace {

PostOpChain Chain(EltwiseAlg alg) {
  PostOpChain chain;
  chain.Append(EltwisePostOp(alg));
  return chain;
}

SqueezeExciteDesc Desc(int64_t n, int64_t channels, int64_t pixels, int64_t squeezed,
                       bool plain_dst, EltwiseAlg reduce, EltwiseAlg expand) {
  SqueezeExciteDesc desc;
  desc.src = TensorView(DataType::f32, Layout::nChw16c, {n, channels, pixels, 1});
  desc.dst = TensorView(DataType::f32, plain_dst ? Layout::nc : Layout::nC16c, {n, channels});
  desc.squeezed = squeezed;
  desc.reduce_post_ops = Chain(reduce);
  desc.expand_post_ops = Chain(expand);
  return desc;
}

SqueezeExciteDesc Scaling(SqueezeExciteDesc desc) {
  desc.dst = desc.src;
  desc.scale_src = true;
  return desc;
}

// The tensors of one run, each up to a guard page.
struct Tensors {
  Tensors(const SqueezeExcitePlan& plan, GuardedBuffer::Guard guard)
      : src(plan.desc.src.elements(), guard),
        reduce_weights(plan.desc.src.c() * plan.desc.squeezed, guard),
        reduce_bias(plan.desc.squeezed, guard),
        expand_weights(plan.desc.src.c() * plan.desc.squeezed, guard),
        expand_bias(plan.desc.src.c(), guard),
        dst(plan.desc.dst.elements(), guard),
        scratch(static_cast<int64_t>(plan.scratch.bytes() / sizeof(float))) {}

  SqueezeExciteBuffers buffers(float* to) {
    return {src.data(),         reduce_weights.data(),
            reduce_bias.data(), expand_weights.data(),
            expand_bias.data(), to,
            scratch.data()};
  }

  GuardedBuffer src, reduce_weights, reduce_bias, expand_weights, expand_bias, dst, scratch;
};

// Whole numbers around a whole mean: every sum and quotient is exact.
void FillWithIntegers(const SqueezeExcitePlan& plan, Tensors* t) {
  const TensorView& view = plan.desc.src;
  const int64_t pixels = view.pixels();
  for (size_t i = 0; i < t->src.size(); ++i) {
    const int64_t plane = i / (pixels * 16), p = i / 16 % pixels, lane = i % 16;
    const int64_t c = plane % view.blocks() * 16 + lane;
    const int64_t swing = p == pixels - 1 && pixels % 2 == 1 ? 0 : p % 2 == 0 ? 3 : -3;
    t->src[i] = c < view.c() ? static_cast<float>((plane * 5 + lane) % 7 - 3 + swing) : 0;
  }
  int64_t k = 0;
  for (GuardedBuffer* b :
       {&t->reduce_weights, &t->reduce_bias, &t->expand_weights, &t->expand_bias}) {
    for (size_t i = 0; i < b->size(); ++i) (*b)[i] = static_cast<float>(++k * 7919 % 5 - 2);
  }
}

class SqueezeExciteOnEveryIsa : public testing::TestWithParam<Isa> {
 protected:
  using Fill = std::function<void(const SqueezeExcitePlan&, Tensors*)>;

  void Check(const SqueezeExciteDesc& desc, const Fill& fill, double tolerance) {
    SCOPED_TRACE(testing::Message()
                 << desc.src.ToString() << " to " << desc.dst.ToString() << " squeezed "
                 << desc.squeezed << (desc.scale_src ? " times src" : ""));
    SqueezeExcitePlan plan;
    ASSERT_EQ(MakeSqueezeExcitePlan(desc, GetParam(), pool_.num_threads(), &plan), "");
    for (auto guard : {GuardedBuffer::kAtEnd, GuardedBuffer::kAtStart}) {
      Tensors t(plan, guard);
      fill(plan, &t);
      std::vector<float> expected(t.dst.size());
      SqueezeExciteRef(plan, t.buffers(expected.data()));
      RunSqueezeExcite(plan, t.buffers(t.dst.data()), pool_);
      ExpectNear(t.dst, expected, tolerance);
      if (!desc.scale_src) continue;
      RunSqueezeExcite(plan, t.buffers(t.src.data()), pool_);
      ExpectNear(t.src, expected, tolerance);
    }
  }

  static void ExpectNear(const GuardedBuffer& ours, const std::vector<float>& expected,
                         double tolerance) {
    for (size_t i = 0; i < expected.size(); ++i) {
      if (std::isnan(expected[i]) && std::isnan(ours[i])) continue;
      ASSERT_LE(std::fabs(ours[i] - expected[i]), tolerance) << "at " << i;
    }
  }

  ThreadPool pool_{2};
};

INSTANTIATE_TEST_SUITE_P(Isas, SqueezeExciteOnEveryIsa, testing::ValuesIn(TestIsas()), IsaParam);

// Tails of both widths around every number of vectors that a loop takes at once.
TEST_P(SqueezeExciteOnEveryIsa, TailsOfChannelsAndOfSqueezedOnes) {
  for (int64_t channels : {1, 15, 16, 17, 40, 97, 160}) {
    for (int64_t squeezed : {1, 3, 4, 8, 16, 23, 48, 67}) {
      for (bool plain : {false, true}) {
        Check(Desc(1, channels, 7, squeezed, plain, EltwiseAlg::kRelu, EltwiseAlg::kLinear),
              FillWithIntegers, 0);
      }
      Check(Scaling(Desc(1, channels, 5, squeezed, false, EltwiseAlg::kRelu, EltwiseAlg::kLinear)),
            FillWithIntegers, 0);
    }
  }
}

TEST_P(SqueezeExciteOnEveryIsa, BatchesAndPlanes) {
  for (int64_t n : {0, 1, 3}) {
    for (int64_t pixels : {1, 2, 49, 64}) {
      const auto desc = Desc(n, 37, pixels, 6, false, EltwiseAlg::kRelu, EltwiseAlg::kLinear);
      Check(desc, FillWithIntegers, 0);
      Check(Scaling(desc), FillWithIntegers, 0);
    }
  }
}

// Enough work for several splits of an image, and for several tasks of a batch.
TEST_P(SqueezeExciteOnEveryIsa, ManySplits) {
  for (int64_t n : {1, 5}) {
    const auto desc = Desc(n, 1150, 49, 47, false, EltwiseAlg::kRelu, EltwiseAlg::kLinear);
    SqueezeExcitePlan plan;
    ASSERT_EQ(MakeSqueezeExcitePlan(desc, GetParam(), 2, &plan), "");
    EXPECT_GT(plan.reduce.splits, 2);
    EXPECT_GT(plan.expand.splits, 1);
    Check(desc, FillWithIntegers, 0);
    Check(Scaling(desc), FillWithIntegers, 0);
  }
}

// The mean of nothing, as in pooling.
TEST_P(SqueezeExciteOnEveryIsa, NoPixels) {
  const auto zeros = [](const SqueezeExcitePlan&, Tensors* t) {
    for (GuardedBuffer* b :
         {&t->reduce_weights, &t->reduce_bias, &t->expand_weights, &t->expand_bias}) {
      b->Fill(0.f);
    }
  };
  const auto desc = Desc(2, 19, 0, 3, false, EltwiseAlg::kLinear, EltwiseAlg::kLinear);
  Check(desc, zeros, 0);
  Check(Scaling(desc), zeros, 0);
}

// Rounding: src and weights of magnitude 1, a logistic at the end, whose slope is at most
// 1/4. The sum of 1152 products of means below 1/2, in 4 chains of 8 parts, is wrong by some
// 1e-6; swish and the second sum of 48 add as much.
TEST_P(SqueezeExciteOnEveryIsa, Accuracy) {
  const auto random = [](const SqueezeExcitePlan& plan, Tensors* t) {
    std::mt19937 rng(1);
    const auto fill = [&](GuardedBuffer* b, float scale) {
      std::uniform_real_distribution<float> value(-scale, scale);
      for (size_t i = 0; i < b->size(); ++i) (*b)[i] = value(rng);
    };
    fill(&t->src, 1.f);
    fill(&t->reduce_weights, 1.f);
    fill(&t->reduce_bias, 1.f);
    fill(&t->expand_weights, 1.f / std::sqrt(static_cast<float>(plan.desc.squeezed)));
    fill(&t->expand_bias, 1.f);
  };
  for (int64_t channels : {96, 480, 1152}) {
    for (bool plain : {false, true}) {
      Check(Desc(2, channels, 49, channels / 24, plain, EltwiseAlg::kSwish, EltwiseAlg::kLogistic),
            random, 2e-6);
    }
    Check(Scaling(Desc(2, channels, 49, channels / 24, false, EltwiseAlg::kSwish,
                       EltwiseAlg::kLogistic)),
          random, 2e-6);
  }
}

TEST(SqueezeExcitePlan, NamesWhatIsWrong) {
  auto tensor = Desc(1, 16, 4, 4, true, EltwiseAlg::kRelu, EltwiseAlg::kLogistic);
  tensor.expand_post_ops.Append(SumPostOp());
  const auto with = [](auto change) {
    auto desc = Desc(2, 16, 4, 4, true, EltwiseAlg::kRelu, EltwiseAlg::kLogistic);
    change(&desc);
    return desc;
  };
  const auto scaled = with([](SqueezeExciteDesc* d) { d->scale_src = true; });
  const auto eight = with([](SqueezeExciteDesc* d) {
    d->src = TensorView(DataType::f32, Layout::nChw8c, d->src.dims());
  });
  const auto brain = with([](SqueezeExciteDesc* d) {
    d->src = TensorView(DataType::bf16, Layout::nC16c, {2, 16});
  });
  const auto part = with([](SqueezeExciteDesc* d) {
    d->src = TensorView(DataType::f32, Layout::nChw16c, d->src.dims(), 128);
  });
  const auto other = with([](SqueezeExciteDesc* d) {
    d->dst = TensorView(DataType::f32, Layout::nc, {2, 17});
  });
  const struct {
    SqueezeExciteDesc desc;
    const char* words;
  } cases[] = {
      {tensor, "expand_post_ops \"sum()\": only eltwise entries are possible"},
      {Desc(1, 0, 4, 4, true, EltwiseAlg::kRelu, EltwiseAlg::kRelu), "must be 1 or more"},
      {Desc(1, 16, 4, 0, true, EltwiseAlg::kRelu, EltwiseAlg::kRelu), "0 squeezed values"},
      {scaled, "a scaled src is as src, float32 nChw16c [2, 16, 4, 1], not float32 nc [2, 16]"},
      {eight, "blocks of 16 channels, got float32 nChw8c"},
      {brain, "got bfloat16"},
      {part, "images 128 apart"},
      {other, "no scale for each channel"},
  };
  for (const auto& c : cases) {
    SqueezeExcitePlan plan;
    const std::string error = MakeSqueezeExcitePlan(c.desc, Isa::kGeneric, 1, &plan);
    EXPECT_NE(error.find(c.words), std::string::npos) << "got: " << error;
  }
}

}  // namespace
}  // namespace bd
