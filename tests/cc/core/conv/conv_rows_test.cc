// Inner products of few rows on weights as they are: those that meet only zeros are not read, where
// all are finite.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "cc/core/inner_product/gemv_kernel.h"
#include "tests/cc/core/conv/conv_case.h"
#include "tests/cc/isas.h"

namespace bd {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class ConvRows : public ::testing::TestWithParam<Isa> {
 protected:
  // src times the weights `used`, of which those packed (as constant ones, if `keeps`) were
  // `noted`: weights that change afterwards show which are read.
  std::vector<float> Multiply(const std::vector<float>& src, int64_t ic, int64_t oc,
                              const GuardedBuffer& noted, const GuardedBuffer& used, bool keeps,
                              GuardedBuffer::Guard guard = GuardedBuffer::kAtEnd) {
    ConvShape d = ConvOf({1, ic, 1, static_cast<int64_t>(src.size()) / ic}, oc, 1);
    d.src_layout = d.dst_layout = Layout::nhwc;
    d.keeps_weights = keeps;
    d.algorithm = ConvAlgorithm::kDirect;
    const ConvPlan plan = PlanOf(d, GetParam());
    EXPECT_STREQ(plan.algorithm_name(), "rows");
    EXPECT_EQ(plan.packed_floats() > 0, keeps);
    GuardedBuffer packed(plan.packed_floats()), scratch(plan.scratch.bytes() / 4);
    GuardedBuffer guarded(src.size(), guard), dst(d.ow * oc, guard);
    std::copy(src.begin(), src.end(), guarded.begin());
    PackConvWeights(plan, noted.data(), packed.data(), pool_);
    RunConv(plan, {guarded.data(), packed.data(), nullptr, dst.data(), scratch.data(), used.data()},
            pool_);
    return {dst.begin(), dst.end()};
  }

  ThreadPool pool_{2};
};

INSTANTIATE_TEST_SUITE_P(Isas, ConvRows, ::testing::ValuesIn(TestIsas()), IsaParam);

// Rows that are zero together at every `step`-th k, and each for itself elsewhere.
std::vector<float> SourceWithZeros(int64_t rows, int64_t ic, int64_t step) {
  std::mt19937 rng(5);
  std::normal_distribution<float> normal;
  std::vector<float> src(rows * ic);
  for (int64_t m = 0; m < rows; ++m) {
    for (int64_t k = 0; k < ic; ++k) {
      const bool alone = rows > 1 && (k + m) % rows == 0;
      src[m * ic + k] = k % step == 0 ? -0.f : alone ? 0.f : normal(rng);
    }
  }
  return src;
}

TEST_P(ConvRows, WeightsThatMeetOnlyZerosAreNotRead) {
  for (auto guard : {GuardedBuffer::kAtEnd, GuardedBuffer::kAtStart}) {
    for (int64_t rows = 1; rows <= GemvKernelsFor(GetParam()).max_rows; ++rows) {
      for (int64_t ic : {1, 5, 77, 1100}) {
        GuardedBuffer weights(ic * 37, guard), changed(ic * 37, guard);
        weights.FillIntegers();
        changed.FillIntegers();
        const std::vector<float> src = SourceWithZeros(rows, ic, 3);
        const std::vector<float> expected = Multiply(src, ic, 37, weights, weights, false, guard);
        for (int64_t k = 0; k < ic; k += 3) changed[k * 37 + k % 37] = std::nanf("");
        EXPECT_EQ(Multiply(src, ic, 37, weights, changed, true, guard), expected)
            << rows << " rows of " << ic;
      }
    }
  }
}

TEST_P(ConvRows, AllWeightsAreReadWhereFewMeetOnlyZeros) {
  const int64_t ic = 1100;
  GuardedBuffer weights(ic * 37), changed(ic * 37);
  weights.Fill(1.f);
  changed.Fill(1.f);
  changed[5 * 37 + 2] = std::nanf("");
  const std::vector<float> dst =
      Multiply(SourceWithZeros(2, ic, 5), ic, 37, weights, changed, true);
  for (int64_t i = 0; i < 2 * 37; ++i) EXPECT_EQ(std::isnan(dst[i]), i % 37 == 2) << i;
}

// Zero times infinity is no number, whether the weights are kept or not.
TEST_P(ConvRows, WeightsThatAreNotFiniteAreRead) {
  const int64_t ic = 300;
  for (float odd : {kInfinity, -kInfinity, std::nanf("")}) {
    for (int64_t at : {int64_t{0}, ic * 37 / 2, ic * 37 - 1}) {
      GuardedBuffer weights(ic * 37);
      weights.Fill(1.f);
      weights[at] = odd;
      const std::vector<float> src(ic, 0.f);
      for (bool keeps : {false, true}) {
        const std::vector<float> dst = Multiply(src, ic, 37, weights, weights, keeps);
        for (int64_t i = 0; i < 37; ++i) EXPECT_EQ(std::isnan(dst[i]), i == at % 37) << i;
      }
    }
  }
}

TEST_P(ConvRows, LargeMatricesThatStayArePackedForManyRows) {
  const auto name = [&](int64_t rows, bool keeps) {
    ConvShape d = ConvOf({1, 2048, 1, rows}, 512, 1);
    d.src_layout = d.dst_layout = Layout::nhwc;
    d.keeps_weights = keeps;
    return std::string(PlanOf(d, GetParam()).algorithm_name());
  };
  const GemvKernels& kernels = GemvKernelsFor(GetParam());
  EXPECT_EQ(name(kernels.max_kept_rows, true), "rows");
  EXPECT_EQ(name(kernels.max_kept_rows + 1, true), "gemm");
  EXPECT_EQ(name(kernels.max_rows, false), "rows");
  EXPECT_EQ(name(kernels.max_rows + 1, false), "gemm");
}

}  // namespace
}  // namespace bd
