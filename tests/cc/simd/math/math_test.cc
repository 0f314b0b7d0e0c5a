// Every function of cc/simd/math/math.h against float64 (tests/cc/ulp.h), at one float
// in kStride of the whole range. BD_TEST_MATH_STRIDE=1 takes all 2^32 (about an
// hour) and prints the largest errors, which are the table in cc/simd/math/math.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/cc/isas.h"
#include "tests/cc/simd/math/math_kernel.h"
#include "tests/cc/ulp.h"

namespace bd {
namespace {

constexpr uint32_t kStride = 4093;  // prime, so that all mantissas are met
constexpr double kInf = std::numeric_limits<double>::infinity();

struct Function {
  const char* name;
  MathFunction MathKernels::*kernel;
  std::function<double(double)> exact;
  double bound;  // ulp
  float parameter = 0.f;
  double lowest = -kInf, highest = kInf;  // the domain; NaN is in all of them
  // Where terms that are added up cancel: so many x they are, and an ulp is of the largest then.
  double terms = 0.;
};

double Logistic(double x) { return 1. / (1. + std::exp(-x)); }
double GeluTanh(double x) {
  return x / (1. + std::exp(-2. * std::sqrt(M_2_PI) * (x + 0.044715 * x * x * x)));
}

std::vector<Function> Functions() {
  using K = MathKernels;
  std::vector<Function> functions = {
      {"exp", &K::exp, [](double x) { return std::exp(x); }, 1.1},
      {"expm1", &K::expm1, [](double x) { return std::expm1(x); }, 1.1, 0.f, -kInf, 0.},
      {"logistic", &K::logistic, Logistic, 2.4},
      {"tanh", &K::tanh, [](double x) { return std::tanh(x); }, 2.7},
      {"log", &K::log, [](double x) { return std::log(x); }, 0.9},
      {"log1p", &K::log1p_of_unit, [](double x) { return std::log1p(x); }, 2.1, 0.f, 0., 1.},
      {"soft_relu", &K::soft_relu,
       [](double x) { return (x > 0. ? x : 0.) + std::log1p(std::exp(-std::fabs(x))); }, 2.9},
      {"silu", &K::silu, [](double x) { return x * Logistic(x); }, 3.6},
      {"mish", &K::mish, [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }, 4.5},
      {"gelu_tanh", &K::gelu_tanh, GeluTanh, 3.3},
      {"gelu_erf", &K::gelu_erf, [](double x) { return x * 0.5 * std::erfc(-x * M_SQRT1_2); }, 5.5,
       0.f, -kInf, kInf, 0.5},
      {"sqrt", &K::sqrt, [](double x) { return std::sqrt(x); }, 0.5},
      {"round", &K::round, [](double x) { return std::nearbyint(x); }, 0.},
  };
  for (float alpha : {1.f, 0.3f}) {
    functions.push_back({"elu", &K::elu,
                         [=](double x) { return x > 0. ? x : alpha * std::expm1(x); },
                         alpha == 1.f ? 1.1 : 1.8, alpha});
  }
  for (float alpha : {1.f, 1.702f}) {
    functions.push_back(
        {"swish", &K::swish, [=](double x) { return x * Logistic(alpha * x); }, 3.6, alpha});
  }
  for (float y : {2.f, 3.f, 0.5f, -1.f, -2.5f, 1.f / 3, 17.3f, 0.f, 87.3f, -299.7f, 1e-3f, 1e9f}) {
    const double bound = std::fabs(y) <= 20.f ? 1.6 : 6.;
    functions.push_back({"pow", &K::pow, [=](double x) { return std::pow(x, y); }, bound, y});
  }
  return functions;
}

struct Worst {
  double error = 0.;
  float x = 0.f, got = 0.f;
};

class Samples {
 public:
  Samples(const Function& f, std::vector<Isa> isas) : f_(f), isas_(isas), worst_(isas.size()) {
    x_.reserve(kBatch);
  }

  void Add(uint32_t bits) {
    const float x = FloatFromBits(bits);
    if (x < f_.lowest || x > f_.highest) return;
    x_.push_back(x);
    if (x_.size() == kBatch) Flush();
  }

  const std::vector<Worst>& Finish() {
    while (!x_.empty() && x_.size() % 16 != 0) x_.push_back(x_.back());
    Flush();
    return worst_;
  }

 private:
  static constexpr size_t kBatch = 4096;

  void Flush() {
    std::vector<double> exact(x_.size());
    for (size_t i = 0; i < x_.size(); ++i) exact[i] = f_.exact(x_[i]);
    std::vector<float> got(x_.size());
    for (size_t k = 0; k < isas_.size(); ++k) {
      const MathFunction run = MathKernelsFor(isas_[k]).*f_.kernel;
      run(x_.data(), got.data(), static_cast<int64_t>(x_.size()), f_.parameter);
      for (size_t i = 0; i < x_.size(); ++i) {
        const double terms = std::isfinite(x_[i]) ? std::fabs(f_.terms * x_[i]) : 0.;
        const double ulp = Ulp(std::max(std::fabs(exact[i]), terms));
        const double error = ErrorIn(ulp, got[i], exact[i]);
        if (error > worst_[k].error) worst_[k] = {error, x_[i], got[i]};
      }
    }
    x_.clear();
  }

  const Function& f_;
  std::vector<Isa> isas_;
  std::vector<Worst> worst_;
  std::vector<float> x_;
};

class MathTest : public testing::TestWithParam<int> {};

TEST_P(MathTest, WithinBoundOfFloat64) {
  const Function f = Functions()[GetParam()];
  const char* stride_text = std::getenv("BD_TEST_MATH_STRIDE");
  const uint32_t stride = stride_text == nullptr ? kStride : std::max(1, atoi(stride_text));

  Samples samples(f, TestIsas());
  ForFloats(stride, [&](uint32_t bits) { samples.Add(bits); });

  const std::vector<Worst>& worst = samples.Finish();
  for (size_t k = 0; k < worst.size(); ++k) {
    if (stride_text != nullptr) {
      printf("%-10s %-9.6g %-8s %6.3f ulp at %.9g\n", f.name, f.parameter, IsaName(TestIsas()[k]),
             worst[k].error, worst[k].x);
    }
    EXPECT_LE(worst[k].error, f.bound)
        << f.name << " on " << IsaName(TestIsas()[k]) << ", parameter " << f.parameter
        << ": x = " << worst[k].x << " gives " << worst[k].got << ", exactly "
        << f.exact(worst[k].x);
  }
}

INSTANTIATE_TEST_SUITE_P(All, MathTest, testing::Range(0, static_cast<int>(Functions().size())),
                         [](const testing::TestParamInfo<int>& info) {
                           return std::string(Functions()[info.param].name) + "_" +
                                  std::to_string(info.param);
                         });

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
