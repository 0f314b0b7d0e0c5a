// Every eltwise algorithm as a chain runs it, against float64, over the whole
// float range on every instruction set, within the bounds of eltwise_bounds.h.
//
// BD_TEST_MATH_STRIDE=1 takes all 2^32 floats instead of one in kStride and
// prints the largest errors.
#include "tests/cc/core/post_ops/eltwise_bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "cc/core/post_ops/post_ops.h"
#include "cc/core/post_ops/post_ops_kernel.h"
#include "tests/cc/isas.h"
#include "tests/cc/post_ops_ref.h"
#include "tests/cc/ulp.h"

namespace bd {
namespace {

constexpr uint32_t kStride = 8191;  // prime, so that all mantissas are met
constexpr int64_t kBlock = 16;

// One ulp of the unit that `bound` is in. alpha x + beta is added up, and times x
// for hard_swish; for gelu_erf it is x/2 and x/2 erf(x / sqrt(2)).
double UnitAt(const EltwiseBound& bound, const PostOp& op, double x, double exact) {
  if (bound.unit == kResult || !std::isfinite(x) || !std::isfinite(exact)) return Ulp(exact);
  if (op.eltwise == EltwiseAlg::kGeluErf) return Ulp(std::max(std::fabs(exact), std::fabs(x / 2)));
  const double largest = std::max(std::fabs(op.alpha * x), std::fabs(static_cast<double>(op.beta)));
  const double factor = op.eltwise == EltwiseAlg::kHardSwish ? std::fabs(x) : 1.;
  return Ulp(std::max(std::fabs(exact), std::min(largest, 1e38) * factor));
}

// Powers beside those that the page names: whole and odd, roots, and beyond 20, where bounds are
// wider.
constexpr EltwiseBound kPowers[] = {
    {"eltwise(pow,beta=2)", 1.6, kResult},     {"eltwise(pow,beta=0.5)", 1.6, kResult},
    {"eltwise(pow,beta=-1)", 1.6, kResult},    {"eltwise(pow,beta=0.333333343)", 1.6, kResult},
    {"eltwise(pow,beta=17.3)", 1.6, kResult},  {"eltwise(pow,beta=0)", 1.6, kResult},
    {"eltwise(pow,beta=87.3)", 6, kResult},    {"eltwise(pow,beta=-299.7)", 6, kResult},
    {"eltwise(pow,beta=0.001)", 1.6, kResult}, {"eltwise(pow,beta=1e9)", 6, kResult},
};

class EltwiseBounds : public testing::TestWithParam<EltwiseBound> {};

TEST_P(EltwiseBounds, HoldOverTheFloatRange) {
  const EltwiseBound bound = GetParam();
  const PostOpChain chain = Chain(bound.entry);
  const PostOp& op = chain.entries()[0];
  const char* stride_text = std::getenv("BD_TEST_MATH_STRIDE");

  std::vector<double> worst(TestIsas().size());
  std::vector<float> x, y;
  const auto flush = [&] {
    std::vector<double> exact(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      exact[i] = op.scale * EltwiseValueRef(op.eltwise, op.alpha, op.beta, x[i]);
    }
    for (size_t k = 0; k < worst.size(); ++k) {
      const Isa isa = TestIsas()[k];
      const BoundPostOps bound_chain(chain, isa, kBlock, nullptr, nullptr);
      y = x;
      PostOpKernelsFor(isa).blocked(*bound_chain.program(), y.data(), y.data(),
                                    static_cast<int>(x.size() / kBlock), 0, 0, 0, kBlock);
      for (size_t i = 0; i < x.size(); ++i) {
        const double error = ErrorIn(UnitAt(bound, op, x[i], exact[i]), y[i], exact[i]);
        worst[k] = std::max(worst[k], error);
        ASSERT_LE(error, bound.ulps) << bound.entry << " on " << IsaName(isa) << ": x = " << x[i]
                                     << " gives " << y[i] << ", exactly " << exact[i];
      }
    }
    x.clear();
  };
  ForFloats(stride_text == nullptr ? kStride : std::max(1, atoi(stride_text)), [&](uint32_t bits) {
    x.push_back(FloatFromBits(bits));
    if (x.size() == 4096) flush();
  });
  while (x.size() % kBlock != 0) x.push_back(1.f);
  flush();
  if (stride_text == nullptr) return;
  for (size_t k = 0; k < worst.size(); ++k) {
    printf("%-36s %-8s %6.3f\n", bound.entry, IsaName(TestIsas()[k]), worst[k]);
  }
}

std::string NameOf(const testing::TestParamInfo<EltwiseBound>& info) {
  std::string name = info.param.entry;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !isalnum(c); }, '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, EltwiseBounds, testing::ValuesIn(kEltwiseBounds), NameOf);
INSTANTIATE_TEST_SUITE_P(Powers, EltwiseBounds, testing::ValuesIn(kPowers), NameOf);

TEST(EltwiseBoundsTable, HasEveryAlgorithm) {
  std::set<EltwiseAlg> stated;
  for (const EltwiseBound& bound : kEltwiseBounds)
    stated.insert(Chain(bound.entry).entries()[0].eltwise);
  EXPECT_EQ(stated.size(), static_cast<size_t>(kNumEltwiseAlgs));
}

}  // namespace
}  // namespace bd
