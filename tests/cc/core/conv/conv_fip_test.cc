// The fast inner product, asked for, within a stated bound: conv_test.cc has sums that are exact.
// Tensors sit in guarded buffers: an access beyond an end is a crash.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "cc/base/threads/thread_pool.h"
#include "tests/cc/core/conv/conv_check.h"
#include "tests/cc/guarded_buffer.h"
#include "tests/cc/isas.h"

namespace bd {
namespace {

// A convolution's tensors; `run` fills dst.
struct Problem {
  explicit Problem(const ConvShape& desc)
      : d(desc), src(SrcFloats(d)), weights(WeightFloats(d)), channel(d.oc), dst(DstFloats(d)) {
    src.FillIntegers(3);
    weights.FillIntegers(5);
    channel.FillIntegers(1);
    ClearSrcTail(d, src);
  }

  void FillNormal(unsigned seed, float src_scale_by = 1, float weights_by = 1) {
    std::mt19937 rng(seed);
    std::normal_distribution<float> normal;
    for (float& x : src) x = normal(rng) * src_scale_by;
    for (float& y : weights) y = normal(rng) * weights_by;
    for (float& b : channel) b = normal(rng) * src_scale_by * weights_by;
    ClearSrcTail(d, src);
  }

  // `packed_for` is the source whose magnitude the packed weights are for.
  void Run(ThreadPool& pool, ConvAlgorithm algorithm = kFip, const float* packed_for = nullptr) {
    d.algorithm = algorithm;
    const ConvPlan plan = PlanOf(d, Isa::kAvx512, pool.num_threads());
    ASSERT_STREQ(plan.algorithm_name(), algorithm == kFip ? "paired" : "direct");
    const float* const args[] = {channel.data()};
    PackAndRun(plan, src.data(), weights.data(), args, dst.data(), pool, packed_for);
  }

  float& SrcAt(int64_t c, int64_t pixel) {
    return src[(c / 16 * d.ih * d.iw + pixel) * 16 + c % 16];
  }
  float DstAt(int64_t o, int64_t pixel) const {
    return dst[(o / 16 * d.oh * d.ow + pixel) * 16 + o % 16];
  }

  static constexpr ConvAlgorithm kFip = ConvAlgorithm::kFip;
  ConvShape d;
  GuardedBuffer src, weights, channel, dst;
};

ConvShape Pointwise(int64_t ic, int64_t pixels, int64_t oc) {
  return ConvOf({1, ic, 1, pixels}, oc, 1);
}

class ConvFipTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (BestTestIsa() < Isa::kAvx512) GTEST_SKIP() << "this machine cannot emulate AVX-512";
  }

  ThreadPool one_{1}, two_{2}, three_{3};
};

// Root mean squares of the errors against float64, and of the exact results, without chain.
struct Errors {
  double rms = 0, largest = 0, result_rms = 0;
};

// Of a 1x1 convolution of one image; pixels of which `counts` is false are left out.
Errors ErrorsOf(const Problem& p, const std::function<bool(int64_t)>& counts = nullptr) {
  const ConvShape& d = p.d;
  Errors e;
  int64_t count = 0;
  for (int64_t pixel = 0; pixel < d.oh * d.ow; ++pixel) {
    if (counts && !counts(pixel)) continue;
    for (int64_t o = 0; o < d.oc; ++o, ++count) {
      double exact = 0;
      for (int64_t c = 0; c < d.ic; ++c) {
        exact +=
            double{p.src[(c / 16 * d.ih * d.iw + pixel) * 16 + c % 16]} * p.weights[c * d.oc + o];
      }
      const double off = p.DstAt(o, pixel) - exact;
      e.rms += off * off;
      e.largest = std::max(e.largest, std::fabs(off));
      e.result_rms += exact * exact;
    }
  }
  e.rms = std::sqrt(e.rms / count);
  e.result_rms = std::sqrt(e.result_rms / count);
  return e;
}

// |x|_2 |y|_2 of the typical pixel and output channel.
double Norms(const Problem& p) {
  double x = 0, y = 0;
  for (float v : p.src) x += double{v} * v;
  for (float v : p.weights) y += double{v} * v;
  return std::sqrt(x / (p.d.oh * p.d.ow) * y / p.d.oc);
}

TEST_F(ConvFipTest, SwishOfEqualSumsHasEqualBits) {
  for (Layout layout : {Layout::nChw16c, Layout::nhwc}) {
    for (int64_t oc : {24, 37}) {
      ConvShape d = Pointwise(48, 64, oc);
      d.dst_layout = layout;
      d.post_ops = Chain("binary(add,channel,#0);eltwise(swish)");
      Problem p(d), direct(d);
      p.Run(two_);
      direct.Run(two_, ConvAlgorithm::kDirect);
      EXPECT_EQ(std::memcmp(p.dst.data(), direct.dst.data(), 4 * p.dst.size()), 0);
    }
  }
}

// An exponent a task: digits are kept at any magnitude, and packing for a source of another one
// changes no bit.
TEST_F(ConvFipTest, MagnitudesAndWhatWasPacked) {
  for (float of_src : {1e-15f, 1e-6f, 3e-2f, 1.f, 50.f, 1e9f, 1e15f}) {
    for (float of_weights : {1e-15f, 1e-3f, 1.f, 1e15f}) {
      for (int64_t ic : {96, 5000}) {  // K in one chunk and in two
        Problem p(Pointwise(ic, 37, 40));
        p.FillNormal(1, of_src, of_weights);
        p.Run(two_);
        const Errors e = ErrorsOf(p);
        EXPECT_LT(e.rms, (ic > 96 ? 3e-6 : 8e-7) * e.result_rms) << of_src << " by " << of_weights;
        const std::vector<float> bits(p.dst.begin(), p.dst.end());
        for (float magnitude : {1e-14f, 1e-5f, 1.f, 1e14f}) {
          const std::vector<float> other(p.src.size(), magnitude);
          p.Run(two_, Problem::kFip, other.data());
          ASSERT_EQ(std::memcmp(bits.data(), p.dst.data(), 4 * bits.size()), 0)
              << of_src << " by " << of_weights << " packed for " << magnitude;
        }
      }
    }
  }
}

TEST_F(ConvFipTest, ZerosInAllPairsLeaveTheOtherChannels) {
  Problem p(Pointwise(37, 30, 40));
  p.FillNormal(7, 1e-6f);
  for (int64_t c = 0; c < 32; ++c) {
    for (int64_t i = 0; i < 30; ++i) p.SrcAt(c, i) = 0.f;
  }
  p.Run(two_);
  const Errors e = ErrorsOf(p);
  EXPECT_LT(e.rms, 2e-7 * e.result_rms);
}

TEST_F(ConvFipTest, ZerosGiveExactlyTheBias) {
  ConvShape d = Pointwise(64, 50, 40);
  d.post_ops = Chain("binary(add,channel,#0)");
  Problem p(d);
  p.FillNormal(2);
  for (float& b : p.channel) b *= 1e-25f;
  p.channel[5] = 0.f;
  p.src.Fill(0.f);
  p.Run(two_);
  for (int64_t o = 0; o < d.oc; ++o) {
    for (int64_t i = 0; i < 50; ++i) ASSERT_EQ(p.DstAt(o, i), p.channel[o]) << o;
  }
  p.FillNormal(3);
  for (int64_t c = 0; c < d.ic; ++c) p.weights[c * d.oc + 7] = 0.f;
  p.Run(two_);
  for (int64_t i = 0; i < 50; ++i) ASSERT_EQ(p.DstAt(7, i), p.channel[7]);
}

// A task with a pixel that is not finite takes the exponent 0; tasks beside it notice nothing.
TEST_F(ConvFipTest, APixelThatIsNotFinite) {
  for (float bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    Problem p(Square(64, 40, 64, 1, 1, 0));
    p.FillNormal(4);
    p.SrcAt(3, 17) = bad;
    p.Run(three_);
    const Errors e = ErrorsOf(p, [](int64_t pixel) { return pixel != 17; });
    EXPECT_LT(e.rms, 8e-7 * e.result_rms);
    for (int64_t o = 0; o < 64; ++o) EXPECT_FALSE(std::isfinite(p.DstAt(o, 17)));
  }
}

// |error| < sqrt(K) 2^-24 |x|_2 |y|_2, as docs/algorithms.md states it: normwise, with |x|_2 of
// the typical pixel. Root mean squares beside direct's.
TEST_F(ConvFipTest, ErrorsBesideDirect) {
  const struct {
    const char* name;
    float (*of)(float);
    double most;  // times direct's
  } sources[] = {
      {"normal", [](float x) { return x; }, 3},
      {"relu", [](float x) { return std::max(x, 0.f); }, 3},
      {"swish", [](float x) { return x / (1 + std::exp(-x)); }, 3},
  };
  for (const auto& source : sources) {
    for (int64_t k : {32, 128, 512, 2048}) {
      Problem p(Pointwise(k, 49, 32));
      p.FillNormal(5, 1, 1 / std::sqrt(static_cast<float>(k)));
      for (float& x : p.src) x = source.of(x);
      ClearSrcTail(p.d, p.src);
      p.Run(two_);
      const Errors paired = ErrorsOf(p);
      p.Run(two_, ConvAlgorithm::kDirect);
      const Errors direct = ErrorsOf(p);
      std::printf("%-6s K %4d  direct %.1e  paired %.1e  times %.1f  largest / norms %.1e\n",
                  source.name, static_cast<int>(k), direct.rms / direct.result_rms,
                  paired.rms / paired.result_rms, paired.rms / direct.rms,
                  paired.largest / Norms(p));
      EXPECT_LT(paired.rms, source.most * direct.rms) << source.name << " " << k;
      EXPECT_LT(paired.largest, std::sqrt(k) * std::ldexp(1., -24) * Norms(p));
    }
  }
}

TEST_F(ConvFipTest, RandomRealShapes) {
  std::mt19937 rng(6);
  for (int i = 0; i < 60; ++i) {
    const auto pick = [&](int low, int high) {
      return low + static_cast<int64_t>(rng() % (high - low + 1));
    };
    Problem p(Pointwise(pick(16, 300), pick(1, 60), pick(1, 80)));
    p.FillNormal(i, std::ldexp(1.f, static_cast<int>(pick(-20, 20))));
    p.Run(i % 2 ? one_ : three_);
    const Errors e = ErrorsOf(p);
    EXPECT_LT(e.largest, std::sqrt(p.d.ic) * std::ldexp(1., -24) * Norms(p));
  }
}

}  // namespace
}  // namespace bd
