// Products of matrices of floats, one by one and in pairs.
#include "cc/core/gemm/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "cc/base/cpu/cpu_model.h"
#include "tests/cc/core/gemm/gemm_case.h"

namespace bd {
namespace {

// An ISA, and whether B is packed for pairs.
class GemmTest : public ::testing::TestWithParam<std::tuple<Isa, bool>>, protected GemmCheck {
 protected:
  void SetUp() override {
    static const CpuModel zen4 = {"AuthenticAMD", 0x19, 0x11};
    PretendCpu(&zen4);  // which gains from pairs
  }
  void TearDown() override { PretendCpu(nullptr); }

  Isa isa() const { return std::get<0>(GetParam()); }
  bool pairs() const { return std::get<1>(GetParam()); }

  GemmDesc Describe(int64_t k, int64_t n) const {
    GemmDesc d;
    d.k = k;
    d.n = n;
    d.pairs = pairs();
    return d;
  }

  void Check(const Case& c, int threads = 1) { GemmCheck::Check(isa(), c, Guard::kAtEnd, threads); }
};

INSTANTIATE_TEST_SUITE_P(Isas, GemmTest,
                         ::testing::Combine(::testing::ValuesIn(TestIsas()), ::testing::Bool()),
                         [](const auto& info) {
                           return std::string(IsaName(std::get<0>(info.param))) +
                                  (std::get<1>(info.param) ? "Pairs" : "");
                         });

// One large value in a row or a column of A leaves the other rows as accurate as they were:
// |error| <= 60 eps sum |a| |b| in every element.
TEST_P(GemmTest, OutliersSpoilNoOtherRow) {
  for (const int64_t k : {32, 256, 300}) {
    constexpr int64_t kRows = 40, kColumns = 72;
    for (const bool in_row : {true, false}) {
      for (const float large : {1.f, 1e2f, 1e4f, 1e6f, 1e30f}) {
        std::mt19937 rng(5);
        std::normal_distribution<float> normal;
        GuardedBuffer a(kRows * k), b(k * kColumns), dst(kRows * kColumns);
        for (float& x : a) x = normal(rng);
        for (float& y : b) y = normal(rng);
        for (int64_t i = 0; i < kRows; ++i) {
          for (int64_t c = 0; c < k; ++c) a[i * k + c] *= (in_row ? i == 7 : c == 9) ? large : 1.f;
        }
        const GemmDesc desc = Describe(k, kColumns);
        PlanAndRun(desc, isa(), {b.data(), kColumns, 1}, DenseArgs(desc, a.data(), dst.data()),
                   kRows, 2);
        for (int64_t i = 0; i < kRows; ++i) {
          for (int64_t j = 0; j < kColumns; ++j) {
            double sum = 0, magnitude = 0;
            for (int64_t c = 0; c < k; ++c) {
              const double product = double{a[i * k + c]} * b[c * kColumns + j];
              sum += product;
              magnitude += std::fabs(product);
            }
            ASSERT_LE(std::fabs(dst[i * kColumns + j] - sum), 60 * 6e-8 * magnitude)
                << "k " << k << ", " << large << (in_row ? " in a row" : " in a column") << ", at "
                << i << " " << j;
          }
        }
      }
    }
  }
}

TEST_P(GemmTest, DrawnProducts) {
  GemmPlan plan;
  ASSERT_EQ(MakeGemmPlan(Describe(64, 32), isa(), &plan), "");
  EXPECT_EQ(plan.pairs, pairs() && isa() == Isa::kAvx512);
  CheckDrawn(isa(), Describe(0, 0), 700);
}

// K in many passes, whose partial sums are in C, row-major and not whole; and rows of more than
// four times an L2 of 1 MB. Sums are not clamped: those of some passes would be the same.
TEST_P(GemmTest, PassesOfK) {
  for (int64_t n : {16, 27, 40}) {
    for (int64_t m : {1, 17, 40}) Check({m, 1500, n, Describe(0, 0), true, true, true});
  }
  for (int64_t n : {5, 20, 150}) Check({300, 700, n, Describe(0, 0), true}, 3);
  Check({601, 1990, 330, Describe(0, 0), true, true, false, true});
}

// Floats: equal bits on any number of threads, which split rows and panels, and at any magnitude
// that is a power of two.
TEST_P(GemmTest, SplitsKeepBits) {
  const int64_t m = 137, k = 900, n = 70;
  std::mt19937 rng(1);
  std::normal_distribution<float> normal;
  std::vector<float> a(m * k), scaled(m * k), b(k * n), whole(m * n), parts(m * n);
  for (float& x : a) x = normal(rng);
  for (float& x : b) x = normal(rng);
  GemmPlan plan;
  ASSERT_EQ(MakeGemmPlan(Describe(k, n), isa(), &plan), "");
  const GemmB of_b = {b.data(), n, 1};
  GemmArgs args = DenseArgs(plan.desc, a.data(), whole.data());
  ThreadPool one(1);
  PackAndRun(plan, of_b, args, m, one);
  args.c = parts.data();
  for (int threads : {2, 3, 5}) {
    std::fill(parts.begin(), parts.end(), 0.f);
    ThreadPool pool(threads);
    PackAndRun(plan, of_b, args, m, pool);
    EXPECT_EQ(whole, parts) << threads << " threads";
  }
  for (int exponent : {-40, 12, 40}) {
    for (size_t i = 0; i < a.size(); ++i) scaled[i] = std::ldexp(a[i], exponent);
    args.a = scaled.data();
    PackAndRun(plan, of_b, args, m, one);
    for (float& x : parts) x = std::ldexp(x, -exponent);
    double largest = 0.;
    for (size_t i = 0; i < parts.size(); ++i) {
      largest = std::max<double>(largest, std::abs(parts[i] - whole[i]));
    }
    // Scales of pairs are powers of 16.
    EXPECT_LE(largest, exponent % 4 == 0 ? 0.
                       : pairs()         ? 1e-6 * (1 + std::sqrt(k))
                                         : 0.)
        << exponent;
  }
}

TEST(GemmPlanTest, ErrorsNameTheRemedy) {
  GemmPlan plan;
  EXPECT_EQ(MakeGemmPlan({3, -1}, Isa::kGeneric, &plan),
            "a product of 3 by -1 has a negative size, or is too large");
}

}  // namespace
}  // namespace bd
