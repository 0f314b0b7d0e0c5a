// Threads take units of each other's tasks; what they compute must not depend on it. The
// expected bits are those of one thread that runs all tasks of the same plan by itself.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "cc/base/memory/aligned_buffer.h"
#include "cc/base/threads/thread_pool.h"
#include "cc/core/conv/conv.h"
#include "cc/core/conv/conv_depthwise/conv_depthwise.h"
#include "tests/cc/core/conv/conv_case.h"
#include "tests/cc/isas.h"

namespace bd {
namespace {

constexpr int kThreads = 4;
constexpr int kRuns = 60;

struct Case {
  const char* name;
  ConvAlgorithm algorithm;
  int64_t n, ic, oc, size, k, stride;
  bool plain_src;
};

constexpr Case kCases[] = {
    {"groups", ConvAlgorithm::kFip, 1, 40, 320, 14, 1, 1, false},
    {"groups, direct", ConvAlgorithm::kDirect, 1, 40, 320, 14, 1, 1, false},
    {"groups of strips", ConvAlgorithm::kFip, 2, 40, 200, 30, 3, 1, false},
    {"pixels", ConvAlgorithm::kFip, 1, 72, 24, 28, 1, 1, false},
    {"pixels, direct", ConvAlgorithm::kDirect, 2, 72, 24, 28, 1, 1, false},
    {"rows", ConvAlgorithm::kFip, 2, 40, 24, 21, 3, 1, false},
    {"rows, direct", ConvAlgorithm::kDirect, 2, 40, 24, 21, 3, 1, false},
    {"strided rows", ConvAlgorithm::kDirect, 1, 48, 32, 40, 1, 2, false},
    {"strided rows, paired", ConvAlgorithm::kFip, 1, 48, 32, 40, 1, 2, false},
    {"image", ConvAlgorithm::kDirect, 1, 3, 32, 57, 3, 2, true},
    {"winograd", ConvAlgorithm::kWinograd, 1, 40, 320, 14, 3, 1, false},
    {"winograd, paired", ConvAlgorithm::kAuto, 1, 256, 320, 28, 3, 1, false},
    {"winograd of many tiles", ConvAlgorithm::kWinograd, 2, 20, 40, 60, 3, 1, false},
};

// Normal numbers whose magnitude wanders from 2^-14 to 2^14: of paired products the tasks of a
// plan have different exponents.
std::vector<float> Wandering(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i) {
    values[i] = std::ldexp(normal(random), static_cast<int>(14 * std::sin(i * 9e-4)));
  }
  return values;
}

ConvShape DescOf(const Case& c) {
  ConvShape d = Square(c.ic, c.size, c.oc, c.k, c.stride, c.k / 2);
  d.n = c.n;
  d.algorithm = c.algorithm;
  if (c.plain_src) d.src_layout = Layout::nhwc;
  return d;
}

std::vector<float> SourceOf(const ConvShape& d) { return Wandering(SrcFloats(d), 1); }

std::vector<float> DstOf(const ConvShape& d) { return std::vector<float>(ResultFloats(d)); }

class ConvUnits : public ::testing::TestWithParam<Isa> {
 protected:
  // run(pool) gives a result: by one thread first, then by all.
  template <typename Run>
  void ExpectSameBits(Run&& run) {
    std::vector<float> expected;
    pool_.ParallelFor(2, [&](int64_t task, int) {  // a call from inside a body runs inline
      if (task == 0) expected = run(pool_);
    });
    int wrong = 0;
    for (int i = 0; i < kRuns; ++i) {
      const std::vector<float> dst = run(pool_);
      wrong += std::memcmp(dst.data(), expected.data(), 4 * dst.size()) != 0;
    }
    EXPECT_EQ(wrong, 0);
  }

  ThreadPool pool_{kThreads};
};

TEST_P(ConvUnits, OfTiles) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const ConvShape d = DescOf(c);
    const ConvPlan plan = PlanOf(d, GetParam(), kThreads);
    ASSERT_GT(plan.tasks, 1);
    const std::vector<float> src = SourceOf(d);
    const std::vector<float> weights = Wandering(WeightFloats(d), 2);
    AlignedBuffer packed(plan.packed_floats() * sizeof(float)), scratch(plan.scratch.bytes());
    PackConvWeights(plan, weights.data(), packed.As<float>(), pool_);
    ExpectSameBits([&](ThreadPool& pool) {
      std::vector<float> dst = DstOf(d);
      RunConv(plan, {src.data(), packed.As<float>(), nullptr, dst.data(), scratch.data()}, pool);
      return dst;
    });
  }
}

TEST_P(ConvUnits, OfPairs) {
  for (int64_t size : {7, 20, 40}) {
    for (ConvAlgorithm algorithm : {ConvAlgorithm::kFip, ConvAlgorithm::kDirect}) {
      Case c = {"", algorithm, 2, 40, 240, size, 1, 1, false};
      const ConvShape first = DescOf(c);
      c.ic = c.oc;
      c.k = 3;
      ConvShape depthwise = DescOf(c);
      depthwise.groups = depthwise.ic;
      depthwise.algorithm = ConvAlgorithm::kAuto;
      ConvDepthwisePlan plan;
      ASSERT_EQ(MakeConvDepthwisePlan(first, depthwise, GetParam(), kThreads, &plan), "");
      const std::vector<float> src = SourceOf(first);
      const std::vector<float> weights = Wandering(first.ic * first.oc, 2);
      const std::vector<float> taps = Wandering(9 * first.oc, 3);
      AlignedBuffer packed(plan.first.packed_floats() * sizeof(float));
      AlignedBuffer packed_taps(plan.depthwise.packed_floats() * sizeof(float));
      AlignedBuffer scratch(plan.scratch.bytes());
      PackConvWeights(plan.first, weights.data(), packed.As<float>(), pool_);
      PackConvWeights(plan.depthwise, taps.data(), packed_taps.As<float>(), pool_);
      ExpectSameBits([&](ThreadPool& pool) {
        std::vector<float> dst = DstOf(depthwise);
        RunConvDepthwise(plan,
                         {src.data(), packed.As<float>(), packed_taps.As<float>(), nullptr, nullptr,
                          dst.data(), scratch.data()},
                         pool);
        return dst;
      });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, ConvUnits, ::testing::ValuesIn(TestIsas()), IsaParam);

}  // namespace
}  // namespace bd
