// Rounding error of the algorithms against float64, on normal data and with outliers: the numbers
// of docs/algorithms.md. Run with --gtest_filter=*Accuracy* to print them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <vector>

#include "cc/base/cpu/cpu_model.h"
#include "cc/base/threads/thread_pool.h"
#include "cc/core/conv/conv.h"
#include "tests/cc/core/conv/conv_ref.h"
#include "tests/cc/isas.h"

namespace bd {
namespace {

struct Case {
  ConvAlgorithm algorithm;
  int64_t channels, size, kh, kw, stride;
  const char* name;     // the algorithm that must have run
  double rms, largest;  // bounds, relative to the rms and to the largest value of the result
};

constexpr Case kCases[] = {
    {ConvAlgorithm::kDirect, 64, 28, 3, 3, 1, "direct", 6e-7, 1.5e-6},
    {ConvAlgorithm::kWinograd, 64, 28, 3, 3, 1, "winograd4x4", 1.2e-6, 2.5e-6},
    {ConvAlgorithm::kDirect, 512, 14, 3, 3, 1, "direct", 1.7e-6, 4e-6},
    {ConvAlgorithm::kWinograd, 512, 14, 3, 3, 1, "winograd4x4", 3e-6, 5e-6},
    {ConvAlgorithm::kDirect, 512, 7, 3, 3, 1, "direct", 1.7e-6, 4e-6},
    {ConvAlgorithm::kWinograd, 512, 7, 3, 3, 1, "winograd2x2", 1.2e-6, 2.5e-6},
    {ConvAlgorithm::kDirect, 48, 35, 5, 5, 1, "direct", 9e-7, 2.5e-6},
    {ConvAlgorithm::kWinograd, 48, 35, 5, 5, 1, "winograd2x2", 1.2e-6, 2.5e-6},
    {ConvAlgorithm::kDirect, 384, 8, 1, 3, 1, "direct", 9e-7, 2.5e-6},
    {ConvAlgorithm::kWinograd, 384, 8, 1, 3, 1, "winograd1x4", 1.2e-6, 2.5e-6},
    {ConvAlgorithm::kDirect, 160, 17, 7, 1, 1, "direct", 9e-7, 2.5e-6},
    {ConvAlgorithm::kWinograd, 160, 17, 7, 1, 1, "winograd3x1", 2.5e-6, 5e-6},
    {ConvAlgorithm::kDirect, 3, 224, 7, 7, 2, "direct_plain", 5e-7, 1e-6},
    {ConvAlgorithm::kWinograd, 3, 224, 7, 7, 2, "winograd3x3", 1e-6, 2e-6},
};

TEST(ConvAccuracy, WithinTheDocumentedBounds) {
  ThreadPool pool(2);
  std::mt19937 rng(1);
  std::normal_distribution<float> normal;
  for (const Case& c : kCases) {
    const Axes pad(c.kh / 2, c.kw / 2);
    ConvShape d = ConvOf({1, c.channels, c.size, c.size}, std::max<int64_t>(16, c.channels),
                         {c.kh, c.kw}, c.stride, 1, pad, pad);
    if (c.channels < 16) d.src_layout = Layout::nhwc;
    d.algorithm = c.algorithm;
    const ConvPlan plan = PlanOf(d, DetectIsa(), pool.num_threads());
    ASSERT_STREQ(plan.algorithm_name(), c.name);
    std::vector<float> src(d.ic * d.ih * d.iw), weights(WeightFloats(d));
    std::vector<float> dst(d.oc * d.oh * d.ow);
    for (float& v : src) v = normal(rng);
    for (float& v : weights) v = normal(rng) / std::sqrt(1.f * d.kh * d.kw * d.ic);
    PackAndRun(plan, src.data(), weights.data(), nullptr, dst.data(), pool);

    double error = 0, power = 0, worst = 0, largest = 0;
    for (int64_t p = 0; p < d.oh * d.ow; ++p) {
      const std::vector<double> exact =
          SumsRef(plan.desc, src.data(), weights.data(), 0, p / d.ow, p % d.ow);
      for (int64_t o = 0; o < d.oc; ++o) {
        const double off = dst[(o / 16 * d.oh * d.ow + p) * 16 + o % 16] - exact[o];
        error += off * off;
        power += exact[o] * exact[o];
        worst = std::max(worst, std::fabs(off));
        largest = std::max(largest, std::fabs(exact[o]));
      }
    }
    const double rms = std::sqrt(error / power);
    std::printf("%-12s %dx%d %4d channels %3dx%-3d rms %.1e  largest %.1e\n", c.name,
                static_cast<int>(d.kh), static_cast<int>(d.kw), static_cast<int>(d.ic),
                static_cast<int>(d.ih), static_cast<int>(d.iw), rms, worst / largest);
    EXPECT_LT(rms, c.rms) << c.name;
    EXPECT_LT(worst / largest, c.largest) << c.name;
  }
}

// An output's error depends on what the output is computed from: outliers in one pixel, row,
// channel or sample leave the others as accurate as they were. docs/algorithms.md has the factors.
constexpr double kEps = std::numeric_limits<float>::epsilon() / 2;

enum class Where { kNowhere, kPixel, kRow, kChannel, kSample };

struct IsolationCase {
  ConvAlgorithm algorithm;
  int64_t ic, size, oc, k;
  const char* name;  // the algorithm that must have run
  int tile;          // outputs of a tile in each direction; 0: an output has no others beside
  double factor;     // |error| <= factor eps sum |x| |w|
};

constexpr IsolationCase kIsolationCases[] = {
    {ConvAlgorithm::kDirect, 64, 9, 40, 1, "direct", 0, 40},
    {ConvAlgorithm::kDirect, 72, 9, 40, 3, "direct", 0, 40},
    {ConvAlgorithm::kFip, 32, 9, 40, 1, "paired", 0, 60},
    {ConvAlgorithm::kFip, 64, 9, 40, 1, "paired", 0, 60},
    {ConvAlgorithm::kFip, 264, 9, 48, 1, "paired", 0, 60},
    {ConvAlgorithm::kFip, 72, 9, 40, 3, "paired", 0, 60},
    {ConvAlgorithm::kWinograd, 64, 16, 40, 3, "winograd4x4", 4, 40},
    {ConvAlgorithm::kWinograd, 48, 35, 40, 5, "winograd2x2", 2, 40},
    {ConvAlgorithm::kAuto, 64, 28, 64, 3, "winograd4x4", 4, 60},  // in pairs, with AVX-512
};

class ConvIsolation : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    static const CpuModel zen4 = {"AuthenticAMD", 0x19, 0x11};
    PretendCpu(&zen4);  // which gains from pairs
  }
  void TearDown() override { PretendCpu(nullptr); }
};

ConvShape ShapeOf(const IsolationCase& c) {
  ConvShape d = Square(c.ic, c.size, c.oc, c.k, 1, c.k / 2);
  d.n = 2;
  d.algorithm = c.algorithm;
  return d;
}

float* SrcAt(const ConvShape& d, std::vector<float>& src, int64_t n, int64_t c, int64_t y,
             int64_t x) {
  const int64_t blocks = (d.ic + 15) / 16;
  return &src[(((n * blocks + c / 16) * d.ih + y) * d.iw + x) * 16 + c % 16];
}

void MakeLarge(const ConvShape& d, Where where, float factor, std::vector<float>& src) {
  const int64_t line = d.ih / 2;
  ForIndices({d.n, d.ic, d.ih, d.iw}, [&](const Dims& at) {
    const bool is_first = at[kN] == 0, on_line = is_first && at[kH] == line;
    const bool is_large = where == Where::kPixel     ? on_line && at[kW] == line
                          : where == Where::kRow     ? on_line
                          : where == Where::kChannel ? at[kC] == d.ic / 3
                                                     : where == Where::kSample && is_first;
    if (is_large) *SrcAt(d, src, at[kN], at[kC], at[kH], at[kW]) *= factor;
  });
}

// The largest |error| / (eps sum |x| |w|) of all outputs; a sum over tiles takes the largest
// weight of each channel for all pixels of the tile's source.
double WorstFactor(const IsolationCase& k, const ConvShape& d, std::vector<float>& src,
                   const std::vector<float>& weights, const std::vector<float>& dst) {
  const int64_t ocb = (d.oc + 15) / 16;
  const ConvDesc desc = d;
  const auto sizes = [](std::vector<float> values) {
    for (float& x : values) x = std::fabs(x);
    return values;
  };
  const std::vector<float> src_sizes = sizes(src), weight_sizes = sizes(weights);
  double worst = 0;
  std::vector<float> largest(d.ic * d.oc);  // weights of each pair of channels
  for (size_t at = 0; at < weights.size(); ++at) {
    float& weight = largest[at % largest.size()];
    weight = std::max(weight, weight_sizes[at]);
  }
  for (int64_t n = 0; n < d.n; ++n) {
    for (int64_t y = 0; y < d.oh; ++y) {
      for (int64_t x = 0; x < d.ow; ++x) {
        const std::vector<double> sums = SumsRef(desc, src.data(), weights.data(), n, y, x);
        std::vector<double> magnitudes(d.oc);
        if (k.tile == 0) magnitudes = SumsRef(desc, src_sizes.data(), weight_sizes.data(), n, y, x);
        if (k.tile > 0) {
          const int64_t top = y / k.tile * k.tile - d.pad_top;
          const int64_t left = x / k.tile * k.tile - d.pad_left, reach = k.tile + d.kh - 1;
          for (int64_t c = 0; c < d.ic; ++c) {
            double patch = 0;
            for (int64_t h = std::max<int64_t>(0, top); h < std::min(d.ih, top + reach); ++h) {
              for (int64_t w = std::max<int64_t>(0, left); w < std::min(d.iw, left + reach); ++w) {
                patch += double{std::fabs(*SrcAt(d, src, n, c, h, w))};
              }
            }
            for (int64_t o = 0; o < d.oc; ++o) magnitudes[o] += patch * largest[c * d.oc + o];
          }
        }
        for (int64_t o = 0; o < d.oc; ++o) {
          const double off =
              std::fabs(dst[(((n * ocb + o / 16) * d.oh + y) * d.ow + x) * 16 + o % 16] - sums[o]);
          const double factor =
              magnitudes[o] == 0 ? (off == 0 ? 0 : 1e30) : off / (kEps * magnitudes[o]);
          worst = std::isfinite(factor) ? std::max(worst, factor) : 1e30;
        }
      }
    }
  }
  return worst;
}

TEST_P(ConvIsolation, OutliersSpoilNobodyElse) {
  if (GetParam() > BestTestIsa()) GTEST_SKIP() << "this machine cannot emulate it";
  ThreadPool pool(2);
  for (const IsolationCase& k : kIsolationCases) {
    if (k.algorithm == ConvAlgorithm::kFip && GetParam() < Isa::kAvx512) continue;
    const ConvShape d = ShapeOf(k);
    const ConvPlan plan = PlanOf(d, GetParam(), pool.num_threads());
    ASSERT_STREQ(plan.algorithm_name(), k.name);
    double all = 0;
    for (const Where where :
         {Where::kNowhere, Where::kPixel, Where::kRow, Where::kChannel, Where::kSample}) {
      for (const float large : {1e2f, 1e4f, 1e6f, 1e30f}) {
        if (where == Where::kNowhere && large > 1e2f) break;
        std::mt19937 rng(7);
        std::normal_distribution<float> normal;
        std::vector<float> src(SrcFloats(d)), weights(WeightFloats(d)), dst(DstFloats(d));
        for (int64_t n = 0; n < d.n; ++n) {
          for (int64_t c = 0; c < d.ic; ++c) {
            for (int64_t p = 0; p < d.ih * d.iw; ++p) {  // half of them zeros, as after a relu
              *SrcAt(d, src, n, c, p / d.iw, p % d.iw) = std::max(0.f, normal(rng));
            }
          }
        }
        for (float& w : weights) w = normal(rng) / std::sqrt(1.f * d.kh * d.kw * d.ic);
        MakeLarge(d, where, large, src);
        PackAndRun(plan, src.data(), weights.data(), nullptr, dst.data(), pool);
        const double worst = WorstFactor(k, d, src, weights, dst);
        EXPECT_LE(worst, k.factor) << k.name << " " << k.k << "x" << k.k << " of " << k.ic
                                   << " channels, " << large << " in " << static_cast<int>(where);
        all = std::max(all, worst);
      }
    }
    std::printf("%-12s%-7s %dx%d %3d channels: %.1f eps sum |x| |w|\n", k.name, plan.note,
                static_cast<int>(k.k), static_cast<int>(k.k), static_cast<int>(k.ic), all);
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, ConvIsolation, ::testing::ValuesIn(TestIsas()), IsaParam);

}  // namespace
}  // namespace bd
