#include "cc/core/softmax/softmax.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "tests/cc/guarded_buffer.h"
#include "tests/cc/isas.h"

namespace bd {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

SoftmaxPlan Plan(int64_t rows, int64_t channels, Isa isa) {
  SoftmaxPlan plan;
  EXPECT_EQ(MakeSoftmaxPlan({rows, channels}, isa, &plan), "");
  return plan;
}

void FillNormal(float scale, unsigned seed, GuardedBuffer* buffer) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.f, scale);
  for (float& x : *buffer) x = normal(random);
}

// In units of 2^-24: the rounding of src - m weighs |src - m|, exp 2.2, the inverse and
// the product 1 each, and a sum of n terms in chains of 4 to 64 lanes less than 8 + n / 16.
double Bound(double exact, double distance, int64_t channels) {
  const double units = distance + 12. + static_cast<double>(channels) / 16.;
  return exact * std::ldexp(units, -24) + 2 * std::ldexp(1., -149);
}

void ExpectRow(const float* src, int64_t channels, const float* dst, Isa isa) {
  double largest = -kInf, sum = 0., total = 0.;
  for (int64_t c = 0; c < channels; ++c) largest = std::max<double>(largest, src[c]);
  for (int64_t c = 0; c < channels; ++c) sum += std::exp(src[c] - largest);
  for (int64_t c = 0; c < channels; ++c) {
    const double exact = std::exp(src[c] - largest) / sum;
    ASSERT_NEAR(dst[c], exact, Bound(exact, largest - src[c], channels))
        << IsaName(isa) << ", " << channels << " channels, channel " << c;
    total += dst[c];
  }
  EXPECT_NEAR(total, 1., 1e-6) << IsaName(isa) << ", " << channels << " channels";
}

std::vector<int64_t> Widths() {
  std::vector<int64_t> widths = {127, 128, 129, 1000, 1001, 4099};
  for (int64_t channels = 1; channels <= 70; ++channels) widths.push_back(channels);
  return widths;
}

TEST(Softmax, EveryWidthBesideGuardPages) {
  ThreadPool pool(1);
  constexpr int64_t kRows = 7;  // several at a time, and some that are left
  for (Isa isa : TestIsas()) {
    for (int64_t channels : Widths()) {
      for (auto guard : {GuardedBuffer::kAtEnd, GuardedBuffer::kAtStart}) {
        for (float scale : {1.f, 30.f}) {
          GuardedBuffer src(kRows * channels, guard), dst(kRows * channels, guard);
          FillNormal(scale, static_cast<unsigned>(channels), &src);
          RunSoftmax(Plan(kRows, channels, isa), src.data(), dst.data(), pool);
          for (int64_t row = 0; row < kRows; ++row) {
            ExpectRow(src.data() + row * channels, channels, dst.data() + row * channels, isa);
          }
        }
      }
    }
  }
}

TEST(Softmax, DstMayBeSrc) {
  ThreadPool pool(2);
  for (Isa isa : TestIsas()) {
    for (int64_t channels : {5, 64, 1000}) {
      GuardedBuffer src(4 * channels), dst(4 * channels);
      FillNormal(3.f, 7, &src);
      RunSoftmax(Plan(4, channels, isa), src.data(), dst.data(), pool);
      RunSoftmax(Plan(4, channels, isa), src.data(), src.data(), pool);
      EXPECT_EQ(memcmp(src.data(), dst.data(), dst.size() * sizeof(float)), 0) << IsaName(isa);
    }
  }
}

// As one row after the other: where rows are cut changes nothing.
TEST(Softmax, ManyTasks) {
  ThreadPool pool(2);
  for (Isa isa : TestIsas()) {
    for (int64_t channels : {1, 21, 1000}) {
      const int64_t rows = 100000 / channels;
      GuardedBuffer src(rows * channels), dst(rows * channels), expected(rows * channels);
      FillNormal(3.f, 8, &src);
      const SoftmaxPlan plan = Plan(rows, channels, isa), one = Plan(1, channels, isa);
      EXPECT_GT(plan.tasks, 2);
      EXPECT_EQ(one.tasks, 1);
      RunSoftmax(plan, src.data(), dst.data(), pool);
      for (int64_t row = 0; row < rows; ++row) {
        RunSoftmax(one, src.data() + row * channels, expected.data() + row * channels, pool);
      }
      EXPECT_EQ(memcmp(dst.data(), expected.data(), dst.size() * sizeof(float)), 0)
          << IsaName(isa) << ", " << channels << " channels";
    }
  }
}

// At every place of rows of every width, in one of several rows.
TEST(Softmax, NansAndInfinities) {
  ThreadPool pool(1);
  constexpr int64_t kRows = 5;
  for (Isa isa : TestIsas()) {
    for (int64_t channels = 1; channels <= 70; ++channels) {
      const SoftmaxPlan plan = Plan(kRows, channels, isa);
      GuardedBuffer src(kRows * channels), dst(kRows * channels);
      for (int64_t at = 0; at < kRows * channels; ++at) {
        for (float special : {kNan, kInf, -kInf}) {
          src.FillIntegers(at);
          src[at] = special;
          RunSoftmax(plan, src.data(), dst.data(), pool);
          for (int64_t i = 0; i < kRows * channels; ++i) {
            const bool own_row = i / channels == at / channels;
            const bool nan = own_row && (special != -kInf || channels == 1);
            ASSERT_EQ(std::isnan(dst[i]), nan) << IsaName(isa) << " " << special << " " << i;
            if (nan) continue;
            ASSERT_EQ(dst[i] == 0.f, i == at) << IsaName(isa) << " " << i;
          }
        }
      }
      for (float all : {kNan, kInf, -kInf}) {
        src.Fill(all);
        RunSoftmax(plan, src.data(), dst.data(), pool);
        for (float x : dst) ASSERT_TRUE(std::isnan(x)) << IsaName(isa) << " " << all;
      }
    }
  }
}

TEST(Softmax, FarBelowTheLargestIsZeroAndEqualRowsAreEven) {
  ThreadPool pool(1);
  constexpr float kMax = std::numeric_limits<float>::max();
  for (Isa isa : TestIsas()) {
    GuardedBuffer src(32), dst(32);
    for (float level : {-kMax, -1e4f, 0.f, 1e4f, kMax}) {
      src.Fill(level);
      RunSoftmax(Plan(1, 32, isa), src.data(), dst.data(), pool);
      for (float x : dst) EXPECT_EQ(x, 1.f / 32) << IsaName(isa) << " " << level;
    }
    src.Fill(-kMax);
    src[9] = kMax;
    src[20] = kMax * 0.5f;
    RunSoftmax(Plan(1, 32, isa), src.data(), dst.data(), pool);
    for (int c = 0; c < 32; ++c) EXPECT_EQ(dst[c], c == 9 ? 1.f : 0.f) << IsaName(isa) << " " << c;
  }
}

TEST(Softmax, EmptyTensorsAndBadSizes) {
  ThreadPool pool(1);
  for (SoftmaxDesc desc : {SoftmaxDesc{0, 5}, SoftmaxDesc{5, 0}, SoftmaxDesc{0, 0}}) {
    const SoftmaxPlan plan = Plan(desc.rows, desc.channels, Isa::kGeneric);
    EXPECT_EQ(plan.tasks, 0);
    RunSoftmax(plan, nullptr, nullptr, pool);
  }
  SoftmaxPlan plan;
  EXPECT_EQ(MakeSoftmaxPlan({-1, 5}, Isa::kGeneric, &plan),
            "softmax of -1 rows of 5 channels: sizes must not be negative, nor their product "
            "above 2^47");
}

}  // namespace
}  // namespace bd
