// Swish that becomes bfloat16 or bytes, and functions whose way depends on the other lanes of a
// vector, against float64. As chains run them all functions are in
// tests/cc/core/post_ops/eltwise_bounds_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "tests/cc/isas.h"
#include "tests/cc/simd/math/math_kernel.h"
#include "tests/cc/ulp.h"

namespace bd {
namespace {

constexpr uint32_t kStride = 4093;  // prime, so that all mantissas are met

double Logistic(double x) { return 1. / (1. + std::exp(-x)); }

// Swish that becomes bfloat16: 2^-13 of the exact one, or a few units of denormal numbers.
TEST(Math, RoughSilu) {
  std::vector<float> x;
  ForFloats(kStride, [&](uint32_t bits) { x.push_back(FloatFromBits(bits)); });
  for (int i = -3000; i < 3000; ++i) x.push_back(static_cast<float>(i) / 100.f);
  for (float zero : {0.f, -0.f}) x.push_back(zero);
  while (x.size() % 16 != 0) x.push_back(0.f);
  for (Isa isa : TestIsas()) {
    std::vector<float> y(x.size());
    MathKernelsFor(isa).rough_silu(x.data(), y.data(), static_cast<int64_t>(x.size()), 0.f);
    for (size_t i = 0; i < x.size(); ++i) {
      const double exact = x[i] * Logistic(x[i]);
      if (!std::isfinite(exact)) {
        ASSERT_LE(UlpError(y[i], exact), 0.) << IsaName(isa) << ": " << x[i] << " gives " << y[i];
        continue;
      }
      ASSERT_NEAR(y[i], exact, std::max(0x1p-13 * std::fabs(exact), 4 * 0x1p-149))
          << IsaName(isa) << ": " << x[i];
      ASSERT_EQ(std::signbit(y[i]), std::signbit(exact)) << IsaName(isa) << ": " << x[i];
    }
  }
}

// Swish of steps that become bytes: the bounds of cc/simd/math/math_activations.h.
TEST(Math, SiluOfSteps) {
  std::vector<float> numbers;
  for (int i = -64000; i <= 64000; ++i) numbers.push_back(static_cast<float>(i) / 3200.f);
  for (float large : {100.f, 1e4f, 1e6f}) numbers.insert(numbers.end(), {large, -large});
  while (numbers.size() % 16 != 0) numbers.push_back(0.f);
  for (Isa isa : TestIsas()) {
    for (float step : {0x1p-10f, 0.0031f, 0.05f, 0.7f, 3.f}) {
      std::vector<float> x, y(numbers.size());
      for (float v : numbers) x.push_back(v / step);
      MathKernelsFor(isa).silu_of_steps(x.data(), y.data(), static_cast<int64_t>(x.size()), step);
      for (size_t i = 0; i < x.size(); ++i) {
        const double real = static_cast<double>(x[i]) * step, exact = real * Logistic(real);
        const double roundings = 1e-6 * std::fabs(exact);
        ASSERT_NEAR(y[i] * static_cast<double>(step), exact,
                    std::min(2.0e-4, 2.4e-4 * std::fabs(real)) + roundings)
            << IsaName(isa) << ": " << real;
      }
    }
  }
}

// Swish and the logistic function take a short way where all lanes of some vectors are between -20
// and 68: each special value, and those about these bounds, in every lane among small ones, which
// they leave as they are bit for bit.
TEST(Math, MixedLanes) {
  const float big = std::numeric_limits<float>::max();
  using K = MathKernels;
  for (const auto& [kernel, bound] :
       {std::pair{&K::silu, 3.6}, std::pair{&K::rough_silu, 2048.}, std::pair{&K::logistic, 2.4}}) {
    const bool silu = kernel != &K::logistic;
    for (Isa isa : TestIsas()) {
      const auto run = MathKernelsFor(isa).*kernel;
      for (float special : {NAN, INFINITY, -INFINITY, big, -big, -19.9f, -20.2f, 68.4f, 68.9f,
                            -87.f, 87.f, -100.f, 1e-45f, -0.f}) {
        for (size_t lane = 0; lane < 48; ++lane) {
          std::vector<float> x(48), y(48), alone(48);
          for (size_t i = 0; i < x.size(); ++i) x[i] = 0.75f * i - 17.f;
          run(x.data(), alone.data(), x.size(), 0.f);
          x[lane] = special;
          run(x.data(), y.data(), x.size(), 0.f);
          for (size_t i = 0; i < x.size(); ++i) {
            const double exact = silu ? x[i] * Logistic(x[i]) : Logistic(x[i]);
            ASSERT_LE(UlpError(y[i], exact), bound)
                << IsaName(isa) << ": " << x[i] << " beside " << special << " gives " << y[i];
            if (i != lane) {
              ASSERT_EQ(y[i], alone[i]) << IsaName(isa) << ": " << x[i] << " beside " << special;
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace bd
