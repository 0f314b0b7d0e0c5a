// Paired products of Winograd's planes, as "auto" chooses them where they pay: errors beside
// those of Winograd by multiply-adds alone, in guarded buffers.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <random>
#include <vector>

#include "cc/base/cpu/cpu_model.h"
#include "cc/base/threads/thread_pool.h"
#include "cc/core/conv/conv.h"
#include "cc/core/conv/winograd/winograd.h"
#include "tests/cc/core/conv/conv_case.h"
#include "tests/cc/core/conv/conv_ref.h"
#include "tests/cc/guarded_buffer.h"
#include "tests/cc/isas.h"

namespace bd {
namespace {

struct Window {
  int64_t kh, kw;
};

ConvShape Of(const Window& window, int64_t n, int64_t ic, int64_t oc, int64_t size) {
  const Axes pad(window.kh / 2, window.kw / 2);
  return ConvOf({n, ic, size, size}, oc, {window.kh, window.kw}, 1, 1, pad, pad);
}

class WinogradFipTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (BestTestIsa() < Isa::kAvx512) GTEST_SKIP() << "this machine cannot emulate AVX-512";
    static const CpuModel zen4 = {"AuthenticAMD", 0x19, 0x11};
    PretendCpu(&zen4);  // on others "auto" pairs nothing
  }
  void TearDown() override { PretendCpu(nullptr); }

  void Fill(const ConvShape& desc, float magnitude) {
    d_ = desc;
    std::mt19937 rng(3);
    std::normal_distribution<float> normal;
    src_.emplace(SrcFloats(d_));
    weights_.emplace(WeightFloats(d_));
    for (float& x : *src_) x = magnitude * std::max(0.f, normal(rng));
    for (float& y : *weights_) y = normal(rng);
    ClearSrcTail(d_, *src_);
  }

  std::vector<float> Run(ConvAlgorithm algorithm, int threads, bool* paired) {
    d_.algorithm = algorithm;
    ThreadPool pool(threads);
    ConvPlan plan;
    EXPECT_EQ(MakeConvPlan(d_, Isa::kAvx512, threads, &plan), "");
    *paired = plan.algorithm->run == RunWinograd && plan.Own<WinogradPlan>().fip();
    GuardedBuffer dst(ResultFloats(d_));
    PackAndRun(plan, src_->data(), weights_->data(), nullptr, dst.data(), pool);
    return {dst.begin(), dst.end()};
  }

  // The root mean square against float64, of that of the results.
  double Error(const std::vector<float>& dst) const {
    std::vector<float> expected(dst.size());
    ConvRef(d_, src_->data(), weights_->data(), nullptr, expected.data());
    double error = 0, results = 0;
    for (size_t i = 0; i < dst.size(); ++i) {
      error += (double{dst[i]} - expected[i]) * (double{dst[i]} - expected[i]);
      results += double{expected[i]} * expected[i];
    }
    return std::sqrt(error / results);
  }

  ConvShape d_;
  std::optional<GuardedBuffer> src_, weights_;
};

TEST_F(WinogradFipTest, ErrorsBesideWinograd) {
  int chosen = 0;
  for (const Window& window : {Window{3, 3}, {5, 5}, {1, 3}, {3, 1}, {1, 7}, {7, 1}}) {
    for (const auto& [n, ic, oc, size] :
         {std::array<int64_t, 4>{1, 64, 64, 14}, {2, 40, 56, 11}, {1, 256, 32, 9}}) {
      Fill(Of(window, n, ic, oc, size), 1);
      bool paired, unpaired;
      const double alone = Error(Run(ConvAlgorithm::kWinograd, 2, &unpaired));
      const std::vector<float> dst = Run(ConvAlgorithm::kAuto, 2, &paired);
      EXPECT_FALSE(unpaired);
      if (!paired) continue;  // few pixels, many channels: "paired" by itself is faster
      ++chosen;
      const double error = Error(dst);
      std::printf("%dx%d %4d->%2d at %2d  alone %.1e  paired %.1e\n", static_cast<int>(window.kh),
                  static_cast<int>(window.kw), static_cast<int>(ic), static_cast<int>(oc),
                  static_cast<int>(size), alone, error);
      EXPECT_LT(error, 2.5 * alone);
      EXPECT_LT(Error(Run(ConvAlgorithm::kAuto, 3, &paired)), 2.5 * alone);
      EXPECT_EQ(dst, Run(ConvAlgorithm::kAuto, 2, &paired));
    }
  }
  EXPECT_GE(chosen, 14);
}

TEST_F(WinogradFipTest, AnyMagnitudeOfTheSource) {
  for (float magnitude : {1e-12f, 1e-5f, 30.f, 1e5f, 1e12f}) {
    Fill(Of({3, 3}, 1, 64, 48, 14), magnitude);
    bool paired;
    EXPECT_LT(Error(Run(ConvAlgorithm::kAuto, 2, &paired)), 2e-6) << magnitude;
    EXPECT_TRUE(paired);
  }
}

// Channels after the last whole block have no pair; they keep their digits.
TEST_F(WinogradFipTest, ZerosInAllPairsLeaveTheOtherChannels) {
  Fill(Of({3, 3}, 1, 40, 48, 14), 1e-6f);
  for (int64_t c = 0; c < 32; ++c) {
    for (int64_t i = 0; i < 14 * 14; ++i) (*src_)[(c / 16 * 14 * 14 + i) * 16 + c % 16] = 0;
  }
  bool paired;
  EXPECT_LT(Error(Run(ConvAlgorithm::kAuto, 2, &paired)), 2e-6);
  EXPECT_TRUE(paired);
}

// Results are zero, and so are the tails of channels, exactly.
TEST_F(WinogradFipTest, ZerosStayZero) {
  Fill(Of({3, 3}, 1, 64, 40, 14), 0);
  bool paired;
  for (float y : Run(ConvAlgorithm::kAuto, 2, &paired)) ASSERT_EQ(y, 0.f);
  Fill(Of({3, 3}, 1, 64, 40, 14), 1);
  const std::vector<float> dst = Run(ConvAlgorithm::kAuto, 2, &paired);
  for (int64_t i = 0; i < 14 * 14; ++i) {
    for (int64_t lane = 8; lane < 16; ++lane) ASSERT_EQ(dst[(2 * 14 * 14 + i) * 16 + lane], 0.f);
  }
}

}  // namespace
}  // namespace bd
