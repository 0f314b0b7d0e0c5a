// Batch normalisation against its definition, forward and backward: every instruction set, tails,
// one pass after the other and by block, values far from zero.
#include "cc/core/normalization/batch_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "cc/base/memory/aligned_buffer.h"
#include "tests/cc/core/normalization/batch_norm_ref.h"
#include "tests/cc/guarded_buffer.h"
#include "tests/cc/isas.h"

namespace bd {
namespace {

// Of the largest that is expected, or of `least`.
constexpr double kTolerance = 1e-5;

void ExpectNear(const float* got, const float* expected, int64_t count, const std::string& text,
                double least = 0) {
  double largest = least;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, std::fabs(double{expected[i]}));
  for (int64_t i = 0; i < count; ++i) {
    ASSERT_NEAR(got[i], expected[i], kTolerance * largest) << text << " at " << i;
  }
}

class Case {
 public:
  explicit Case(const BatchNormDesc& desc, float mean = 0.5f)
      : d_(desc),
        floats_(desc.n * desc.blocks() * desc.pixels * 16),
        src_(floats_),
        ddst_(floats_),
        gamma_(desc.channels),
        beta_(desc.channels),
        dmean_(desc.channels),
        dvariance_(desc.channels) {
    uint32_t state = 1;
    const auto draw = [&state] {
      state = state * 1664525u + 1013904223u;
      return static_cast<float>(state >> 8) / (1 << 24) - 0.5f;
    };
    for (int64_t i = 0; i < floats_; ++i) {
      const bool tail = i / (16 * d_.pixels) % d_.blocks() * 16 + i % 16 >= d_.channels;
      src_[i] = tail ? 0.f : mean + draw();
      ddst_[i] = tail ? 0.f : draw();
    }
    for (int64_t c = 0; c < d_.channels; ++c) {
      gamma_[c] = 1 + draw();
      beta_[c] = draw() / 4;
      dmean_[c] = draw();
      dvariance_[c] = draw();
    }
  }

  void Check(int threads) {
    for (Isa isa : TestIsas()) {
      const BatchNormPlan plan = MakeBatchNormPlan(d_, isa, threads);
      const std::string text = std::string(IsaName(isa)) + " n " + std::to_string(d_.n) +
                               " channels " + std::to_string(d_.channels) + " pixels " +
                               std::to_string(d_.pixels) + " threads " + std::to_string(threads);
      Forward(plan, text);
      Backward(plan, BatchNormClamp::kNone, text);
      Backward(plan, BatchNormClamp::kRelu, text + " relu");
      Backward(plan, BatchNormClamp::kRelu6, text + " relu6");
    }
  }

 private:
  void Forward(const BatchNormPlan& plan, const std::string& text) {
    const AlignedBuffer scratch(plan.scratch.bytes());
    GuardedBuffer dst(floats_), mean(d_.channels), variance(d_.channels);
    std::vector<float> y(floats_), m(d_.channels), v(d_.channels);
    RunBatchNorm(plan,
                 {src_.data(), gamma_.data(), beta_.data(), dst.data(), mean.data(),
                  variance.data(), scratch.data()},
                 ThreadPool::Shared(threads(plan)));
    BatchNormRef(d_, {src_.data(), gamma_.data(), beta_.data(), y.data(), m.data(), v.data()});
    ExpectNear(dst.data(), y.data(), floats_, text + " dst");
    ExpectNear(mean.data(), m.data(), d_.channels, text + " mean");
    ExpectNear(variance.data(), v.data(), d_.channels, text + " variance");
    mean_ = m;
    variance_ = v;
  }

  void Backward(const BatchNormPlan& plan, BatchNormClamp clamp, const std::string& text) {
    const AlignedBuffer scratch(plan.scratch.bytes());
    std::vector<float> x(floats_), dg(d_.channels), db(d_.channels);
    BatchNormGradArgs args;
    args.src = src_.data();
    args.ddst = ddst_.data();
    args.clamp = clamp;
    std::vector<float> gamma(gamma_.begin(), gamma_.end());
    if (clamp == BatchNormClamp::kRelu6) {
      for (float& g : gamma) g *= 8;  // so that results reach 6
    }
    args.gamma = gamma.data();
    args.beta = beta_.data();
    args.mean = mean_.data();
    args.variance = variance_.data();
    args.dmean = dmean_.data();
    args.dvariance = dvariance_.data();
    args.dsrc = x.data();
    args.dgamma = dg.data();
    args.dbeta = db.data();
    BatchNormGradRef(d_, args);
    GuardedBuffer dsrc(floats_), dgamma(d_.channels), dbeta(d_.channels);
    std::copy(ddst_.begin(), ddst_.end(), dsrc.begin());
    args.ddst = args.dsrc = dsrc.data();  // in place
    args.dgamma = dgamma.data();
    args.dbeta = dbeta.data();
    args.scratch = scratch.data();
    RunBatchNormGrad(plan, args, ThreadPool::Shared(threads(plan)));
    const double terms = std::sqrt(d_.n * d_.pixels);  // of sums that may cancel
    ExpectNear(dsrc.data(), x.data(), floats_, text + " dsrc");
    ExpectNear(dgamma.data(), dg.data(), d_.channels, text + " dgamma", terms);
    ExpectNear(dbeta.data(), db.data(), d_.channels, text + " dbeta", terms);
  }

  static int threads(const BatchNormPlan& plan) { return plan.by_block ? 1 : 3; }

  const BatchNormDesc d_;
  const int64_t floats_;
  GuardedBuffer src_, ddst_, gamma_, beta_, dmean_, dvariance_;
  std::vector<float> mean_, variance_;
};

BatchNormDesc Desc(int64_t n, int64_t channels, int64_t pixels) {
  BatchNormDesc d;
  d.n = n;
  d.channels = channels;
  d.pixels = pixels;
  d.epsilon = 1e-3f;
  return d;
}

TEST(BatchNorm, SizesAndThreads) {
  for (int threads : {1, 3}) {
    for (int64_t channels : {1, 16, 20, 70}) {
      for (int64_t pixels : {1, 3, 49, 1030}) Case(Desc(2, channels, pixels)).Check(threads);
    }
  }
  EXPECT_FALSE(MakeBatchNormPlan(Desc(2, 20, 49), Isa::kGeneric, 3).by_block);
  EXPECT_TRUE(MakeBatchNormPlan(Desc(2, 20, 49), Isa::kGeneric, 1).by_block);
}

// Squares of values near 1,000 that differ by 1 would keep no digit of the variance.
TEST(BatchNorm, MeansFarFromZero) {
  BatchNormDesc d = Desc(4, 16, 300);
  d.epsilon = 1.f;  // x itself is rounded to 6e-5, which r would enlarge
  std::vector<float> src(4 * 300 * 16), ones(16, 1.f), beta(16), dst(src.size()), mean(16),
      variance(16);
  for (size_t i = 0; i < src.size(); ++i) src[i] = 1000.f + static_cast<float>(i / 16 % 2);
  for (Isa isa : TestIsas()) {
    RunBatchNorm(MakeBatchNormPlan(d, isa, 1),
                 {src.data(), ones.data(), beta.data(), dst.data(), mean.data(), variance.data()},
                 ThreadPool::Shared(1));
    for (int c = 0; c < 16; ++c) {
      EXPECT_EQ(mean[c], 1000.5f);
      EXPECT_EQ(variance[c], 0.25f);
    }
  }
}

// The statistics are relative to the first value, which may be the largest of all.
TEST(BatchNorm, OutliersThatComeFirst) {
  BatchNormDesc d = Desc(2, 16, 1000);
  std::vector<float> src(2 * 1000 * 16), ones(16, 1.f), beta(16), dst(src.size()), mean(16),
      variance(16);
  for (const float outlier : {1e2f, 1e4f, 1e6f}) {
    double sum = 0, squares = 0;
    for (size_t i = 0; i < src.size(); ++i) {
      src[i] = i < 16 ? outlier : static_cast<float>(i / 16 * 7919 % 1009) / 1009 - 0.5f;
      if (i % 16 == 0) sum += src[i], squares += double{src[i]} * src[i];
    }
    const double m = sum / 2000, v = squares / 2000 - m * m;
    for (Isa isa : TestIsas()) {
      RunBatchNorm(MakeBatchNormPlan(d, isa, 1),
                   {src.data(), ones.data(), beta.data(), dst.data(), mean.data(), variance.data()},
                   ThreadPool::Shared(1));
      EXPECT_NEAR(mean[3], m, 1e-7 * std::fabs(m)) << outlier;
      EXPECT_NEAR(variance[3], v, 1e-7 * v) << outlier;
    }
  }
}

TEST(BatchNorm, NoValues) {
  for (int64_t n : {0, 2}) {
    const BatchNormDesc d = Desc(n, 3, n == 0 ? 5 : 0);
    std::vector<float> ones(3, 1.f), mean(3, 7.f), variance(3, 7.f);
    RunBatchNorm(MakeBatchNormPlan(d, Isa::kGeneric, 1),
                 {nullptr, ones.data(), ones.data(), nullptr, mean.data(), variance.data()},
                 ThreadPool::Shared(1));
    EXPECT_EQ(mean[2], 0.f);
    EXPECT_EQ(variance[2], 0.f);
  }
}

}  // namespace
}  // namespace bd
