#include "cc/core/normalization/layer_norm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>

#include "cc/base/memory/aligned_buffer.h"
#include "tests/cc/core/normalization/layer_norm_ref.h"
#include "tests/cc/guarded_buffer.h"
#include "tests/cc/isas.h"

namespace bd {
namespace {

constexpr float kEpsilon = 1e-6f;

int64_t Floats(const LayerNormDesc& d) {
  return d.images * d.pixels * (d.blocked ? (d.channels + 15) / 16 * 16 : d.channels);
}

int64_t At(const LayerNormDesc& d, int64_t n, int64_t p, int64_t c) {
  if (!d.blocked) return (n * d.pixels + p) * d.channels + c;
  const int64_t padded = (d.channels + 15) / 16 * 16;
  return (n * padded + c / 16 * 16) * d.pixels + p * 16 + c % 16;
}

// Zeros in the tail; a mean far from 0, of which a one-pass variance would lose digits, and a
// deviation of about 1 in every pixel.
void Fill(const LayerNormDesc& d, GuardedBuffer* src) {
  std::mt19937 random(static_cast<unsigned>(d.channels));
  std::uniform_real_distribution<float> distance(0.8f, 1.2f);
  src->Fill(0.f);
  for (int64_t n = 0; n < d.images; ++n) {
    for (int64_t p = 0; p < d.pixels; ++p) {
      for (int64_t c = 0; c < d.channels; ++c) {
        (*src)[At(d, n, p, c)] = 100.f + (c % 2 == 0 ? distance(random) : -distance(random));
      }
    }
  }
}

struct Case {
  explicit Case(const LayerNormDesc& d, GuardedBuffer::Guard guard = GuardedBuffer::kAtEnd)
      : desc(d),
        src(Floats(d), guard),
        dst(Floats(d), guard),
        expected(Floats(d)),
        gamma(d.channels, guard),
        beta(d.channels, guard) {
    Fill(d, &src);
    for (int64_t c = 0; c < d.channels; ++c) {
      gamma[c] = 0.5f + 0.25f * static_cast<float>(c % 5);
      beta[c] = 1.f - 0.5f * static_cast<float>(c % 7);
    }
    LayerNormRef(d, src.data(), gamma.data(), beta.data(), expected.data());
  }

  void Run(Isa isa, ThreadPool& pool, float* to) {
    LayerNormPlan plan;
    ASSERT_EQ(MakeLayerNormPlan(desc, isa, &plan), "");
    RunLayerNorm(plan, src.data(), gamma.data(), beta.data(), to, pool);
  }

  // Around 100 a mean is off by some 1e-5, which is what the deviations are off by, too.
  void Expect(const float* got, Isa isa) const {
    for (int64_t i = 0; i < Floats(desc); ++i) {
      ASSERT_NEAR(got[i], expected[i], 1e-4f) << IsaName(isa) << " " << desc.channels << " " << i;
      if (desc.blocked && expected[i] == 0.f) {
        ASSERT_EQ(got[i], 0.f);
      }
    }
  }

  LayerNormDesc desc;
  GuardedBuffer src, dst, expected, gamma, beta;
};

TEST(LayerNorm, EveryWidthAndLayoutBesideGuardPages) {
  ThreadPool pool(2);
  for (Isa isa : TestIsas()) {
    for (bool blocked : {false, true}) {
      for (int64_t channels : {2, 3, 7, 8, 15, 16, 17, 31, 33, 40, 96, 768}) {
        for (int64_t pixels : {1, 7, 8, 19}) {
          for (auto guard : {GuardedBuffer::kAtEnd, GuardedBuffer::kAtStart}) {
            for (bool centered : {true, false}) {
              Case c({2, pixels, channels, blocked, kEpsilon, centered}, guard);
              c.Run(isa, pool, c.dst.data());
              c.Expect(c.dst.data(), isa);
            }
          }
        }
      }
    }
  }
}

TEST(LayerNorm, TheReferenceHasMeanBetaAndDeviationGamma) {
  const LayerNormDesc d = {1, 3, 64, true, 0.f};
  Case c(d);
  c.gamma.Fill(2.f);
  c.beta.Fill(5.f);
  LayerNormRef(d, c.src.data(), c.gamma.data(), c.beta.data(), c.expected.data());
  for (int64_t p = 0; p < d.pixels; ++p) {
    double mean = 0, squares = 0;
    for (int64_t i = 0; i < 64; ++i) mean += c.expected[At(d, 0, p, i)] / 64.;
    for (int64_t i = 0; i < 64; ++i) squares += std::pow(c.expected[At(d, 0, p, i)] - mean, 2) / 64;
    EXPECT_NEAR(mean, 5., 1e-6);
    EXPECT_NEAR(squares, 4., 1e-5);
  }
}

TEST(LayerNorm, DstMayBeSrcAndTasksChangeNothing) {
  for (Isa isa : TestIsas()) {
    for (bool blocked : {false, true}) {
      Case c({3, 3000, 40, blocked, kEpsilon});
      ThreadPool one(1), two(2);
      c.Run(isa, two, c.dst.data());
      c.Expect(c.dst.data(), isa);
      c.Run(isa, one, c.src.data());
      EXPECT_EQ(memcmp(c.src.data(), c.dst.data(), c.dst.size() * sizeof(float)), 0);
    }
  }
}

// Its pixel is NaN, its tail stays zero, and its neighbours do not see it.
TEST(LayerNorm, Nan) {
  ThreadPool pool(1);
  for (Isa isa : TestIsas()) {
    Case c({1, 11, 21, true, kEpsilon});
    c.src[At(c.desc, 0, 4, 9)] = std::numeric_limits<float>::quiet_NaN();
    c.Run(isa, pool, c.dst.data());
    for (int64_t p = 0; p < 11; ++p) {
      for (int64_t i = 0; i < 32; ++i) {
        const float got = c.dst[At(c.desc, 0, p, i)];
        EXPECT_EQ(std::isnan(got), p == 4 && i < 21) << IsaName(isa) << " " << p << " " << i;
        if (i >= 21) {
          EXPECT_EQ(got, 0.f);
        }
      }
    }
  }
}

// Backward against its definition, beside guard pages; dsrc takes ddst's memory in every other
// case.
TEST(LayerNorm, Gradient) {
  ThreadPool pool(2);
  for (Isa isa : TestIsas()) {
    for (int64_t channels : {1, 2, 7, 16, 17, 33, 40, 96, 200}) {
      for (int64_t pixels : {1, 3, 4, 19, 2000, -1, -3, -19, -2000}) {
        const bool blocked = pixels > 0;
        pixels = std::abs(pixels);
        const LayerNormDesc d = {2, pixels, channels, blocked, 0.01f, (channels + pixels) % 3 != 0};
        Case c(d);
        std::mt19937 random(7);
        std::uniform_real_distribution<float> value(-1.f, 1.f);
        GuardedBuffer ddst(Floats(d)), dgamma(channels), dbeta(channels);
        GuardedBuffer expected_dgamma(channels), expected_dbeta(channels);
        ddst.Fill(0.f);
        for (int64_t n = 0; n < d.images; ++n) {
          for (int64_t p = 0; p < pixels; ++p) {
            for (int64_t i = 0; i < channels; ++i) {
              ddst[At(d, n, p, i)] = value(random);
              c.src[At(d, n, p, i)] = 3.f + value(random);
            }
          }
        }
        LayerNormGradRef(d, {c.src.data(), ddst.data(), c.gamma.data(), c.expected.data(),
                             expected_dgamma.data(), expected_dbeta.data(), nullptr});
        LayerNormGradPlan plan;
        ASSERT_EQ(MakeLayerNormGradPlan(d, isa, &plan), "");
        const AlignedBuffer scratch(plan.scratch.bytes());
        float* const dsrc = pixels % 2 == 0 ? ddst.data() : c.dst.data();
        RunLayerNormGrad(plan,
                         {c.src.data(), ddst.data(), c.gamma.data(), dsrc, dgamma.data(),
                          dbeta.data(), scratch.data()},
                         pool);
        c.Expect(dsrc, isa);
        for (int64_t i = 0; i < channels; ++i) {
          const float limit = 1e-5f * static_cast<float>(d.images * pixels);
          ASSERT_NEAR(dgamma[i], expected_dgamma[i], std::max(limit, 1e-4f)) << IsaName(isa) << i;
          ASSERT_NEAR(dbeta[i], expected_dbeta[i], std::max(limit, 1e-4f)) << IsaName(isa) << i;
        }
      }
    }
  }
}

TEST(LayerNorm, EmptyTensorsAndBadSizes) {
  ThreadPool pool(1);
  LayerNormPlan plan;
  ASSERT_EQ(MakeLayerNormPlan({0, 5, 4, true, 0.f}, Isa::kGeneric, &plan), "");
  RunLayerNorm(plan, nullptr, nullptr, nullptr, nullptr, pool);
  ASSERT_EQ(MakeLayerNormPlan({5, 0, 4, true, 0.f}, Isa::kGeneric, &plan), "");
  RunLayerNorm(plan, nullptr, nullptr, nullptr, nullptr, pool);
  LayerNormGradPlan grad;
  ASSERT_EQ(MakeLayerNormGradPlan({0, 5, 2, true, 0.f}, Isa::kGeneric, &grad), "");
  float rows[4] = {1.f, 1.f, 1.f, 1.f};  // sums of nothing
  RunLayerNormGrad(grad, {nullptr, nullptr, nullptr, nullptr, rows, rows + 2, nullptr}, pool);
  for (float value : rows) EXPECT_EQ(value, 0.f);
  EXPECT_NE(MakeLayerNormPlan({1, 1, 0, true, 0.f}, Isa::kGeneric, &plan), "");
  EXPECT_NE(MakeLayerNormPlan({-1, 1, 4, true, 0.f}, Isa::kGeneric, &plan), "");
}

}  // namespace
}  // namespace bd
