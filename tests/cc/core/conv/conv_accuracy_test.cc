// Rounding error of the algorithms against float64, on normal data: the numbers
// of docs/algorithms.md. Run with --gtest_filter=*Accuracy* to print them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <random>
#include <vector>

#include "cc/base/threads/thread_pool.h"
#include "cc/core/conv/conv.h"
#include "tests/cc/core/conv/conv_case.h"
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

// The exact sum of one output element, in double.
double Sum(const ConvShape& d, const float* src, const float* hwio, int64_t o, int64_t y,
           int64_t x) {
  double sum = 0;
  for (int64_t t = 0; t < d.kh * d.kw; ++t) {
    const int64_t h = y * d.sh + t / d.kw - d.pad_top, w = x * d.sw + t % d.kw - d.pad_left;
    if (h < 0 || h >= d.ih || w < 0 || w >= d.iw) continue;
    for (int64_t c = 0; c < d.ic; ++c) {
      const int64_t at = d.src_layout == Layout::nhwc
                             ? (h * d.iw + w) * d.ic + c
                             : ((c / 16 * d.ih + h) * d.iw + w) * 16 + c % 16;
      sum += static_cast<double>(src[at]) * hwio[(t * d.ic + c) * d.oc + o];
    }
  }
  return sum;
}

TEST(ConvAccuracy, WithinTheDocumentedBounds) {
  ThreadPool pool(2);
  std::mt19937 rng(1);
  std::normal_distribution<float> normal;
  for (const Case& c : kCases) {
    ConvShape d;
    d.ic = c.channels;
    d.oc = std::max<int64_t>(16, c.channels);
    d.ih = d.iw = c.size;
    d.oh = d.ow = c.size / c.stride;
    d.sh = d.sw = c.stride;
    if (c.channels < 16) d.src_layout = Layout::nhwc;
    d.kh = c.kh;
    d.kw = c.kw;
    d.pad_top = c.kh / 2;
    d.pad_left = c.kw / 2;
    d.algorithm = c.algorithm;
    ConvPlan plan;
    ASSERT_EQ(MakeConvPlan(d, DetectIsa(), pool.num_threads(), &plan), "");
    ASSERT_STREQ(plan.algorithm_name(), c.name);
    std::vector<float> src(d.ic * d.ih * d.iw), weights(WeightFloats(d));
    std::vector<float> dst(d.oc * d.oh * d.ow);
    for (float& v : src) v = normal(rng);
    for (float& v : weights) v = normal(rng) / std::sqrt(1.f * d.kh * d.kw * d.ic);
    PackAndRun(plan, src.data(), weights.data(), nullptr, dst.data(), pool);

    double error = 0, power = 0, worst = 0, largest = 0;
    for (int64_t o = 0; o < d.oc; o += 7) {
      for (int64_t p = 0; p < d.oh * d.ow; ++p) {
        const double exact = Sum(d, src.data(), weights.data(), o, p / d.ow, p % d.ow);
        const double off = dst[(o / 16 * d.oh * d.ow + p) * 16 + o % 16] - exact;
        error += off * off;
        power += exact * exact;
        worst = std::max(worst, std::fabs(off));
        largest = std::max(largest, std::fabs(exact));
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

}  // namespace
}  // namespace bd
