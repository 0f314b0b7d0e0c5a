// Products of matrices against the definition on every ISA: all tails of all sizes, strides,
// epilogues and splits, in guarded buffers: an access beyond an end is a crash. Sums of integers
// are exact, so they compare with zero tolerance; those of pairs are not.
#include "cc/core/gemm/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "cc/base/cpu/cpu_model.h"
#include "cc/core/post_ops/post_ops.h"
#include "tests/cc/core/gemm/gemm_ref.h"
#include "tests/cc/guarded_buffer.h"
#include "tests/cc/isas.h"
#include "tests/cc/post_ops_ref.h"

namespace bd {
namespace {

enum class Order { kRowMajor, kTransposed, kStrided };

struct Case {
  int64_t m, k, n;
  Order order = Order::kRowMajor;
  int64_t a_gap = 0, c_gap = 0;  // floats between rows
  bool bias = false, add = false, clamp = false, chain = false;
};

int64_t Span(int64_t rows, int64_t row, int64_t stride) {
  return rows == 0 ? 0 : (rows - 1) * stride + row;
}

// An ISA, and whether B is packed for pairs.
class GemmTest : public ::testing::TestWithParam<std::tuple<Isa, bool>> {
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

  // Of sums of k products of numbers of about `size`.
  double Bound(int64_t k, double size) const {
    return pairs() ? 1e-6 * size * size * (1 + std::sqrt(k)) : 0.;
  }

  void Check(const Case& c, GuardedBuffer::Guard guard, int threads = 1) {
    SCOPED_TRACE(testing::Message()
                 << c.m << " x " << c.k << " x " << c.n << " order " << static_cast<int>(c.order)
                 << " bias " << c.bias << " add " << c.add << " clamp " << c.clamp << " gaps "
                 << c.a_gap << " " << c.c_gap);
    const int64_t a_stride = c.k + c.a_gap, c_stride = c.n + c.c_gap;
    GuardedBuffer a(Span(c.m, c.k, a_stride), guard), bias(c.n, guard);
    GuardedBuffer add(Span(c.m, c.n, c_stride), guard), dst(Span(c.m, c.n, c_stride), guard);
    GemmB b;
    if (c.order == Order::kRowMajor) {
      b = {nullptr, c.n, 1};
    } else if (c.order == Order::kTransposed) {
      b = {nullptr, 1, c.k + 3};
    } else {
      b = {nullptr, 2 * c.n + 1, 2};
    }
    GuardedBuffer weights(
        c.k * c.n == 0 ? 0 : (c.k - 1) * b.row_stride + (c.n - 1) * b.column_stride + 1, guard);
    a.FillIntegers(1);
    weights.FillIntegers(2);
    bias.FillIntegers(3);
    add.FillIntegers(4);
    dst.Fill(77.f);  // the gaps keep it
    b.data = weights.data();
    GemmPlan plan;
    ASSERT_EQ(MakeGemmPlan(Describe(c.k, c.n), isa(), &plan), "");
    EXPECT_EQ(plan.pairs, pairs() && isa() == Isa::kAvx512);
    GuardedBuffer tensor(c.m * c.n);
    tensor.FillIntegers(5);
    const float* operands[] = {bias.data(), tensor.data()};
    const PostOpChain chain = Chain("binary(mul,channel,#0);binary(add,tensor,#1);eltwise(relu)");
    const BoundPostOps bound_chain(chain, isa(), c.n, operands, nullptr);
    ThreadPool pool(threads);
    GemmArgs args;
    if (c.chain) args.program = bound_chain.program();
    args.a = a.data();
    args.a_row_stride = a_stride;
    args.bias = c.bias ? bias.data() : nullptr;
    args.c = dst.data();
    args.c_row_stride = c_stride;
    args.add = c.add ? add.data() : nullptr;
    args.add_row_stride = c_stride;
    args.add_scale = -2.f;
    args.clamp = c.clamp;
    args.lo = -40.f;
    args.hi = 55.f;
    PackAndRun(plan, b, args, c.m, pool, guard);
    std::vector<float> expected(dst.size(), 77.f);
    args.c = expected.data();
    GemmRef(plan.desc, b, args, c.m);
    for (int64_t i = 0; c.chain && i < c.m * c.n; ++i) {
      float& x = expected[i / c.n * c_stride + i % c.n];
      x = std::max(0.f, x * bias[i % c.n] + tensor[i]);
    }
    const double bound = Bound(c.k, c.chain ? 30. : 10.);
    for (size_t i = 0; i < dst.size(); ++i) ASSERT_NEAR(dst[i], expected[i], bound) << "at " << i;
  }
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

// Rows around the widest tiles, columns around lanes, blocks and panels, K around its runs.
TEST_P(GemmTest, AllTails) {
  for (auto guard : {GuardedBuffer::kAtEnd, GuardedBuffer::kAtStart}) {
    for (int64_t m : {1, 2, 5, 6, 7, 13, 14, 15, 29}) {
      for (int64_t n : {1, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 48, 50, 65}) {
        for (int64_t k : {1, 5, 63, 64, 65, 200}) {
          Check({m, k, n, Order::kRowMajor, 0, 0, true, (m + n) % 2 == 0, k % 2 == 0}, guard);
        }
      }
    }
  }
}

TEST_P(GemmTest, OrdersOfBAndStrides) {
  for (auto guard : {GuardedBuffer::kAtEnd, GuardedBuffer::kAtStart}) {
    for (Order order : {Order::kRowMajor, Order::kTransposed, Order::kStrided}) {
      for (int64_t n : {1, 6, 16, 21, 37, 64}) {
        for (int64_t k : {1, 2, 3, 4, 7, 70}) {
          Check({9, k, n, order, 5, 3, false, true, false}, guard);
        }
      }
    }
  }
}

// K in many passes, whose partial sums are in C, row-major and not whole.
TEST_P(GemmTest, PassesOfK) {
  for (int64_t n : {16, 27, 40}) {
    for (int64_t m : {1, 17, 40}) {
      Check({m, 1500, n, Order::kRowMajor, 1, 2, true, true, true}, GuardedBuffer::kAtEnd);
    }
  }
}

TEST_P(GemmTest, Splits) {
  const Case c = {23, 150, 75, Order::kRowMajor, 0, 0, true, true, true};
  for (int threads : {1, 2, 5}) Check(c, GuardedBuffer::kAtEnd, threads);
  for (int64_t n : {5, 20, 150}) {
    Check({300, 700, n, Order::kTransposed, 0, 0, true}, GuardedBuffer::kAtEnd, 3);
  }
}

// More than four times an L2 of 1 MB. Sums are not clamped: those of some passes would be the same.
TEST_P(GemmTest, RowsBeyondCaches) {
  Check({601, 1990, 330, Order::kTransposed, 1, 2, true, true}, GuardedBuffer::kAtEnd);
}

TEST_P(GemmTest, NothingToDo) {
  Check({0, 5, 20}, GuardedBuffer::kAtEnd);
  Check({3, 0, 20, Order::kRowMajor, 0, 0, true, true}, GuardedBuffer::kAtEnd);
  Check({30, 0, 20, Order::kRowMajor, 0, 0, true, true}, GuardedBuffer::kAtEnd);
  Check({3, 5, 0}, GuardedBuffer::kAtEnd);
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
    EXPECT_LE(largest, exponent % 4 == 0 ? 0. : Bound(k, 1.)) << exponent;
  }
}

// Channel and tensor operands at the places of their elements.
TEST_P(GemmTest, Chains) {
  for (int64_t n : {5, 16, 45, 64}) {
    Case c = {19, 33, n};
    c.chain = true;
    Check(c, GuardedBuffer::kAtEnd, 2);
  }
}

TEST(GemmPlanTest, ErrorsNameTheRemedy) {
  GemmPlan plan;
  EXPECT_EQ(MakeGemmPlan({3, -1}, Isa::kGeneric, &plan),
            "a product of 3 by -1 has a negative size, or is too large");
}

}  // namespace
}  // namespace bd
