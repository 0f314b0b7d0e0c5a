// Weights of bfloat16 and of bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/cc/core/rnn/rnn_case.h"
#include "tests/cc/isas.h"

namespace bd {
namespace {

class RnnLowPrecision : public RnnTest {};
INSTANTIATE_TEST_SUITE_P(, RnnLowPrecision, testing::Bool(),
                         [](const auto& info) { return info.param ? "InPairs" : "OneByOne"; });

// Few rows multiply low-precision weights as they are, many widen them first; sums are cut inside
// K.
TEST_P(RnnLowPrecision, DrawnLayers) {
  for (int threads : {1, 3}) {
    ThreadPool pool(threads);
    for (DataType weights : {DataType::bf16, DataType::s8}) {
      RnnDesc d;
      d.weights = weights;
      ForDrawnLayers(d, 25, [&](RnnCase* c) { CheckRnn(*c, TestIsas(), pool); });
      for (RnnKind kind : kRnnKinds) {
        RnnDesc deep = DescribeRnn(kind, 9, 3, 903, 40);
        deep.weights = weights;
        CheckRnn(RnnCase(deep), TestIsas(), pool);
      }
    }
  }
}

// One row may meet the parts of its state; bytes become bfloat16 for long sequences.
TEST_P(RnnLowPrecision, OneRow) {
  const std::vector<Isa> isas = TestIsas(Isa::kAvx512Bf16);
  ThreadPool one(1), three(3);
  for (RnnKind kind : kRnnKinds) {
    for (DataType weights : {DataType::bf16, DataType::s8}) {
      for (int64_t units : {1, 19, 70, 133, 260}) {
        for (int64_t steps : {1, 15, 70}) {
          RnnDesc d = DescribeRnn(kind, 1, steps, 34, units);
          d.weights = weights;
          RnnCase c(d);
          c.has_mask = steps == 15;
          if (c.has_mask) std::fill_n(c.mask.get() + 2, 9, true);
          CheckRnn(c, isas, three);
          for (Isa isa : isas) {
            RnnResult alone(d), expected(d);
            c.Run(isa, one, &alone);
            c.Run(isa, three, &expected);
            ExpectNear(alone, expected, 0., std::string(IsaName(isa)) + " " + Name(d));
          }
        }
      }
    }
  }
}

// What a call makes of low-precision weights has scales of its own, a column of zeros none, and a
// column of which few numbers are not zero is not for pairs.
TEST_P(RnnLowPrecision, Columns) {
  ThreadPool pool(2);
  for (Isa isa : TestIsas(Isa::kAvx512Bf16)) {
    for (RnnKind kind : kRnnKinds) {
      for (DataType weights : {DataType::bf16, DataType::s8}) {
        for (int64_t batch : {1, 20}) {
          RnnDesc d = DescribeRnn(kind, batch, batch == 1 ? 70 : 5, 36, 33);
          d.weights = weights;
          RnnCase c(d);
          const int64_t columns = d.gates() * d.units;
          for (int64_t i = 0; i < static_cast<int64_t>(c.kernel.size()); ++i) {
            const int64_t column = i % columns;
            if (column % 20 > 2) continue;
            const float factor = column % 20 == 0 ? 0.f : column % 20 == 1 ? i < columns : 0.02f;
            const float scale = weights == DataType::s8 ? c.kernel_scales[column] : 1.f;
            StoreFloatRef(weights, c.kernel[i] * factor / scale, c.rounded_kernel.data(), i);
            c.kernel[i] = scale * LoadAsFloatRef(weights, c.rounded_kernel.data(), i);
          }
          CheckRnn(c, {isa}, pool);
        }
      }
    }
  }
}

// Numbers that no bfloat16 is near to, weights without a rest.
TEST(RnnNarrowOneRow, LargeAndInfiniteStates) {
  ThreadPool pool(2);
  const float kInf = INFINITY, kMost = std::numeric_limits<float>::max();
  for (Isa isa : TestIsas(Isa::kAvx512Bf16)) {
    for (DataType weights : {DataType::bf16, DataType::s8}) {
      for (float odd : {1e6f, -1e30f, kMost, kInf, -kInf, NAN}) {
        RnnDesc d = DescribeRnn(kRnnKinds[0], 1, 16, 0, 35);
        d.activation = RnnActivation::kLinear;
        d.weights = weights;
        RnnCase c(d);
        c.has_bias = false;
        c.has_state = true;
        std::fill(c.recurrent_scales.begin(), c.recurrent_scales.end(), 1.f);
        for (int64_t i = 0; i < 35 * 35; ++i) {  // each state moves one unit on
          const float x = i % 35 == (i / 35 + 1) % 35 ? 1.f : 0.f;
          StoreFloatRef(weights, x, c.rounded_recurrent.data(), i);
        }
        c.h0[3] = odd;
        RnnResult actual(d);
        c.Run(isa, pool, &actual);
        for (int64_t u = 0; u < 35; ++u) {
          const float from = c.h0[(u + 35 - 16) % 35];
          const float value = actual.hn[u];
          // 0 * inf is NaN everywhere but where the infinity went.
          if (std::isfinite(odd)) {
            EXPECT_NEAR(value, from, std::abs(from) * 0x1p-13f) << IsaName(isa) << " " << odd;
          } else {
            EXPECT_TRUE(std::isnan(value)) << IsaName(isa) << " " << odd;
          }
        }
      }
    }
  }
}

// Sums of small integers are exact.
TEST(RnnNarrowOneByOne, IntegersAreExact) {
  PretendCpu(&kNoPairs);
  ThreadPool pool(2);
  for (DataType weights : {DataType::bf16, DataType::s8}) {
    for (int64_t batch : {1, 3, 7, 40}) {
      RnnDesc d = DescribeRnn(kRnnKinds[0], batch, 2, 499, 37);
      d.activation = RnnActivation::kLinear;
      d.weights = weights;
      RnnCase c(d);
      c.src.FillIntegers(1);
      c.bias.FillIntegers(3);
      for (float& scale : c.kernel_scales) scale = 0.5f;
      for (float& scale : c.recurrent_scales) scale = 1.f;
      const float kernel_scale = weights == DataType::s8 ? 0.5f : 1.f;
      for (size_t i = 0; i < c.kernel.size(); ++i) {
        const float x = static_cast<float>(static_cast<int64_t>(i) * 7 % 15 - 7);
        StoreFloatRef(weights, x, c.rounded_kernel.data(), static_cast<int64_t>(i));
        c.kernel[i] = kernel_scale * x;
      }
      for (int64_t i = 0; i < 37 * 37; ++i) {
        const float x = i % 37 == (i / 37 * 3 + 1) % 37 ? 2.f : 0.f;
        StoreFloatRef(weights, x, c.rounded_recurrent.data(), i);
        c.recurrent[i] = x;
      }
      CheckRnn(c, TestIsas(Isa::kAvx512Bf16), pool, 0.);
    }
  }
  PretendCpu(nullptr);
}

TEST_P(RnnLowPrecision, StayNarrow) {
  RnnPlan plan;
  RnnDesc d = DescribeRnn(kRnnKinds[1], 1, 100, 22, 30);
  const int64_t panels = 8;
  for (DataType weights : {DataType::bf16, DataType::s8}) {
    d.weights = weights;
    for (int64_t batch : {1, 50}) {
      d.batch = batch;
      ASSERT_EQ(MakeRnnPlan(d, BestTestIsa(), 2, &plan), "");
      const int64_t rows = (weights == DataType::bf16 ? 11 + 15 : 6 + 8) + (GetParam() ? 4 : 0);
      EXPECT_EQ(plan.packed_floats, panels * rows * 16);
      EXPECT_EQ(plan.w.in_scratch, GetParam() || batch == 50);
      EXPECT_EQ(plan.w.rows == RnnRows::kPairs, GetParam());
      EXPECT_EQ(plan.u.in_scratch, batch == 50);
      EXPECT_EQ(plan.u.rows == RnnRows::kPairs, GetParam() && batch == 50);
    }
  }
  d.training = true;
  EXPECT_EQ(MakeRnnPlan(d, BestTestIsa(), 2, &plan),
            "weights of int8 have no gradient; train with those of float32");
}

}  // namespace
}  // namespace bd
