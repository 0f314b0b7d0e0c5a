// Rows that are multiplied as bfloat16.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/cc/core/rnn/rnn_case.h"
#include "tests/cc/isas.h"

namespace bd {
namespace {

RnnDesc Rounded(RnnKind kind, int64_t batch, int64_t steps, int64_t inputs, int64_t units) {
  RnnDesc d = DescribeRnn(kind, batch, steps, inputs, units);
  d.weights = DataType::bf16;
  d.rounds_rows = true;
  return d;
}

float AsBfloat16(float x) {
  Bfloat16 rounded;
  StoreFloatRef(DataType::bf16, x, &rounded, 0);
  return LoadAsFloatRef(DataType::bf16, &rounded, 0);
}

void Round(GuardedBuffer* floats) {
  for (float& x : *floats) x = AsBfloat16(x);
}

// So few rows are not rounded.
constexpr int64_t kFew = 6;
// A state of magnitude 1 is off by 2^-9 at most, which sums of deviation 1 and gates damp.
constexpr double kRoundedBound = 0.01;

void CheckRounded(const RnnCase& c, Isa isa, ThreadPool& pool) {
  const bool rounds = c.d.batch >= kFew && MultipliesBfloat16(isa);
  CheckRnn(c, {isa}, pool, rounds ? kRoundedBound : kBound);
}

TEST(RnnRounded, DrawnLayersOnThreads) {
  ThreadPool one(1), three(3);
  for (Isa isa : TestIsas(Isa::kAvx512Amx)) {
    RnnDesc d;
    d.weights = DataType::bf16;
    d.rounds_rows = true;
    ForDrawnLayers(d, 25, [&](RnnCase* c) {
      Round(&c->src);
      CheckRounded(*c, isa, three);
      RnnResult alone(c->d), together(c->d);
      c->Run(isa, one, &alone);
      c->Run(isa, three, &together);
      ExpectNear(alone, together, 0., std::string(IsaName(isa)) + " " + Name(c->d));
    });
  }
}

// Sums of x W come in several rounds.
TEST(RnnRounded, LongSequencesAndDeepSums) {
  ThreadPool pool(2);
  for (Isa isa : TestIsas(Isa::kAvx512Amx)) {
    for (RnnKind kind : kRnnKinds) {
      for (const RnnDesc& d : {Rounded(kind, 1, 700, 3, 20), Rounded(kind, 20, 21, 1027, 33)}) {
        RnnCase c(d);
        Round(&c.src);
        CheckRounded(c, isa, pool);
      }
    }
  }
}

// Where rows are rounded, rounding them before changes no bit; elsewhere it does.
TEST(RnnRounded, RowsAreRoundedOnce) {
  ThreadPool pool(2);
  for (Isa isa : TestIsas(Isa::kAvx512Amx)) {
    for (bool of_state : {false, true}) {
      RnnDesc d = Rounded(kRnnKinds[0], 8, 1, of_state ? 0 : 34, 40);
      d.activation = RnnActivation::kLinear;
      RnnCase c(d);
      c.has_state = of_state;
      RnnResult given(d), rounded(d);
      c.Run(isa, pool, &given);
      Round(of_state ? &c.h0 : &c.src);
      c.Run(isa, pool, &rounded);
      const bool same = std::equal(given.dst.begin(), given.dst.end(), rounded.dst.begin());
      EXPECT_EQ(same, MultipliesBfloat16(isa)) << IsaName(isa) << " state " << of_state;
    }
  }
}

// Sums of integers that bfloat16 holds are exact.
TEST(RnnRounded, IntegersAreExact) {
  ThreadPool pool(2);
  for (Isa isa : TestIsas(Isa::kAvx512Amx)) {
    for (int64_t batch : {1, 3, 7, 40}) {
      RnnDesc d = Rounded(kRnnKinds[0], batch, 3, 5, 37);
      d.activation = RnnActivation::kLinear;
      RnnCase c(d);
      c.src.FillIntegers(1);
      for (float& x : c.src) x = std::clamp(x, -2.f, 2.f);
      for (float& x : c.bias) x = 3.f;
      for (size_t i = 0; i < c.kernel.size(); ++i) {
        c.kernel[i] = static_cast<float>(static_cast<int64_t>(i) * 7 % 5 - 2);
        StoreFloatRef(d.weights, c.kernel[i], c.rounded_kernel.data(), static_cast<int64_t>(i));
      }
      for (int64_t i = 0; i < 37 * 37; ++i) {
        c.recurrent[i] = i % 37 == (i / 37 * 3 + 1) % 37 ? 2.f : 0.f;
        StoreFloatRef(d.weights, c.recurrent[i], c.rounded_recurrent.data(), i);
      }
      CheckRnn(c, {isa}, pool, 0.);
    }
  }
}

// Samples are other people's requests: what is no number in one leaves the others as they were.
TEST(RnnRounded, OddSamplesStayAlone) {
  ThreadPool pool(2);
  for (Isa isa : TestIsas(Isa::kAvx512Amx)) {
    for (RnnKind kind : kRnnKinds) {
      for (const float odd : {1e30f, 3.4e38f, INFINITY, -INFINITY, NAN}) {
        RnnCase c(Rounded(kind, 16, 5, 64, 80));
        RnnResult before(c.d), after(c.d);
        c.Run(isa, pool, &before);
        for (int64_t i = 0; i < 5 * 64; ++i) c.src[3 * 5 * 64 + i] = i % 64 == 9 ? odd : 0.f;
        c.Run(isa, pool, &after);
        for (int64_t i = 0; i < 16 * 80; ++i) {
          const bool own = i / 80 == 3;
          if (!own) {
            // Floats in pairs share a scale.
            ASSERT_NEAR(after.hn[i], before.hn[i], MultipliesBfloat16(isa) ? 0. : kBound)
                << IsaName(isa) << " " << Name(c.d) << " " << odd;
          } else if (std::isnan(odd)) {
            ASSERT_TRUE(std::isnan(after.hn[i])) << IsaName(isa) << " " << Name(c.d);
          }
        }
      }
    }
  }
}

TEST(RnnRounded, WeightsStayAsTheyAre) {
  RnnPlan plan;
  for (int64_t batch : {1, 5, 6, 50}) {
    const RnnDesc d = Rounded(kRnnKinds[1], batch, 100, 22, 30);
    for (Isa isa : {Isa::kAvx2, BestTestIsa(Isa::kAvx512Amx)}) {
      ASSERT_EQ(MakeRnnPlan(d, isa, 2, &plan), "");
      const bool rounds = MultipliesBfloat16(isa);
      EXPECT_EQ(plan.packed_floats, 8 * (11 + 15) * 16);
      EXPECT_EQ(plan.w.rows == RnnRows::kBfloat16, rounds);
      EXPECT_EQ(plan.u.rows == RnnRows::kBfloat16, rounds && batch >= kFew);
      EXPECT_EQ(plan.u_by_row, rounds && batch == 1);
      if (rounds) EXPECT_FALSE(plan.w.in_scratch || plan.u.in_scratch);
    }
  }
  RnnDesc floats = Rounded(kRnnKinds[1], 1, 100, 22, 30);
  floats.weights = DataType::f32;
  EXPECT_EQ(MakeRnnPlan(floats, Isa::kAvx2, 2, &plan),
            "round_rows is for weights of bfloat16, not for float32");
}

}  // namespace
}  // namespace bd
