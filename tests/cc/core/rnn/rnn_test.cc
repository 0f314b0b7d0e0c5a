#include "cc/core/rnn/rnn.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/cc/core/rnn/rnn_case.h"
#include "tests/cc/isas.h"

namespace bd {
namespace {

class Rnn : public RnnTest {};
INSTANTIATE_TEST_SUITE_P(, Rnn, testing::Bool(),
                         [](const auto& info) { return info.param ? "InPairs" : "OneByOne"; });

TEST_P(Rnn, DrawnLayers) {
  for (int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    ForDrawnLayers(RnnDesc(), 40, [&](RnnCase* c) { CheckRnn(*c, TestIsas(), pool); });
  }
}

// Samples are other people's requests: a large one leaves the others as they were.
TEST_P(Rnn, OutliersStayInTheirSample) {
  ThreadPool pool(2);
  for (Isa isa : TestIsas()) {
    for (RnnKind kind : kRnnKinds) {
      for (const float large : {1e2f, 1e4f, 1e6f, 1e30f}) {
        RnnCase c(DescribeRnn(kind, 16, 5, 64, 80));
        for (int64_t i = 0; i < 5 * 64; ++i) c.src[3 * 5 * 64 + i] *= large;
        RnnResult expected(c.d), actual(c.d);
        c.Reference(&expected);
        c.Run(isa, pool, &actual);
        for (int64_t i = 0; i < 16 * 80; ++i) {
          if (i / 80 == 3) continue;  // sums beyond 1e30 leave a vanilla cell by a relu
          ASSERT_NEAR(actual.hn[i], expected.hn[i], kBound)
              << IsaName(isa) << " " << Name(c.d) << ", " << large << ", at " << i;
        }
      }
    }
  }
}

// Sums of x W come in several rounds, and products in several blocks of k.
TEST_P(Rnn, LongSequencesAndDeepSums) {
  ThreadPool pool(2);
  for (RnnKind kind : kRnnKinds) {
    CheckRnn(RnnCase(DescribeRnn(kind, 1, 700, 3, 20)), TestIsas(), pool);
    CheckRnn(RnnCase(DescribeRnn(kind, 70, 11, 900, 33)), TestIsas(), pool);
    CheckRnn(RnnCase(DescribeRnn(kind, 9, 3, 10, 400)), TestIsas(), pool);
  }
}

// The state of a row whose steps are all masked is the one it began with, its output zero.
TEST_P(Rnn, AllMasked) {
  ThreadPool pool(1);
  for (Isa isa : TestIsas()) {
    for (RnnKind kind : kRnnKinds) {
      for (bool training : {false, true}) {
        RnnDesc d = DescribeRnn(kind, 2, 3, 4, 17);
        d.training = training;
        RnnCase c(d);
        c.has_mask = c.has_state = true;
        for (int i = 0; i < 6; ++i) c.mask[i] = false;
        RnnResult actual(d);
        c.Run(isa, pool, &actual);
        for (float x : actual.dst) ASSERT_EQ(x, 0.f);
        for (size_t i = 0; i < actual.hn.size(); ++i) ASSERT_EQ(actual.hn[i], c.h0[i]);
        for (size_t i = 0; i < actual.cn.size(); ++i) ASSERT_EQ(actual.cn[i], c.c0[i]);
      }
    }
  }
}

// Whether it keeps what the backward pass needs changes nothing; nor does the pool.
TEST_P(Rnn, TrainingAndThreadsGiveTheSameBits) {
  ThreadPool one(1), three(3);
  for (Isa isa : TestIsas()) {
    for (RnnKind kind : kRnnKinds) {
      RnnDesc d = DescribeRnn(kind, 4, 50, 30, 90);
      RnnCase plain(d);
      plain.has_mask = true;
      RnnResult expected(d), threads(d), training(d);
      plain.Run(isa, one, &expected);
      plain.Run(isa, three, &threads);
      d.training = true;
      RnnCase kept(d);
      kept.has_mask = true;
      kept.Run(isa, three, &training);
      const size_t bytes = expected.dst.size() * sizeof(float);
      EXPECT_EQ(memcmp(expected.dst.data(), threads.dst.data(), bytes), 0) << Name(d);
      EXPECT_EQ(memcmp(expected.dst.data(), training.dst.data(), bytes), 0) << Name(d);
    }
  }
}

// Sums of small integers are exact: the order of packing, panels and blocks of k shows.
TEST(RnnOneByOne, IntegersAreExact) {
  PretendCpu(&kNoPairs);  // pairs add numbers of other magnitudes
  ThreadPool pool(2);
  for (int64_t units : {5, 70, 300}) {
    RnnDesc d = DescribeRnn(kRnnKinds[0], 7, 2, 500, units);
    d.activation = RnnActivation::kLinear;
    RnnCase c(d);
    c.src.FillIntegers(1);
    c.kernel.FillIntegers(2);
    c.bias.FillIntegers(3);
    for (float& x : c.recurrent) x = 0.f;
    for (int64_t u = 0; u < units; ++u) c.recurrent[u * units + (u * 3 + 1) % units] = 2.f;
    CheckRnn(c, TestIsas(), pool, 0.);
  }
  PretendCpu(nullptr);
}

TEST_P(Rnn, FewRowsAreNotPaired) {
  RnnPlan plan;
  for (int64_t batch : {1, 4, 40}) {
    ASSERT_EQ(MakeRnnPlan(DescribeRnn(kRnnKinds[1], batch, 3, 20, 30), BestTestIsa(), 2, &plan),
              "");
    EXPECT_EQ(plan.u.rows == RnnRows::kPairs, GetParam() && batch == 40);
    EXPECT_EQ(plan.w.rows == RnnRows::kPairs, GetParam() && batch > 1);
    EXPECT_EQ(plan.packed_floats, (50 + (GetParam() ? 4 : 0)) * 8 * kRnnPanel);
    ASSERT_EQ(MakeRnnPlan(DescribeRnn(kRnnKinds[1], batch, 3, 20, 30), Isa::kAvx2, 2, &plan), "");
    EXPECT_FALSE(plan.u.prepares() || plan.w.prepares());
  }
}

// Steps of x have scales of their own; weights have columns of their own.
TEST_P(Rnn, Magnitudes) {
  ThreadPool pool(2);
  for (float scale : {0.f, 1e-12f, 1e4f, 1e12f}) {
    RnnDesc d = DescribeRnn(kRnnKinds[0], 40, 6, 50, 70);
    d.activation = RnnActivation::kLinear;
    RnnCase c(d);
    c.has_bias = false;
    for (int64_t n = 0; n < d.batch; ++n) {
      for (int64_t t = 0; t < d.steps; t += 2) {
        float* row = c.src.data() + (n * d.steps + t) * d.inputs;
        for (int64_t i = 0; i < d.inputs; ++i) row[i] *= scale;
      }
    }
    for (float& x : c.recurrent) x *= scale > 1.f ? 1.f / scale : 1.f;
    CheckRnn(c, TestIsas(), pool, kBound * std::max(1.f, scale));
  }
}

TEST_P(Rnn, EmptyBatchesAndBadSizes) {
  ThreadPool pool(2);
  for (RnnKind kind : kRnnKinds) {
    const RnnCase c(DescribeRnn(kind, 0, 3, 4, 5));
    RnnResult result(c.d);
    c.Run(Isa::kGeneric, pool, &result);
  }
  RnnPlan plan;
  EXPECT_EQ(MakeRnnPlan(DescribeRnn(kRnnKinds[1], 2, 0, 4, 5), Isa::kGeneric, 1, &plan),
            "a sequence of 0 steps: there must be at least one");
  EXPECT_EQ(MakeRnnPlan(DescribeRnn(kRnnKinds[1], 2, 3, 4, 0), Isa::kGeneric, 1, &plan),
            "batch 2, 4 inputs and 0 units: sizes must not be negative, nor too large, and there "
            "must be a unit");
}

}  // namespace
}  // namespace bd
