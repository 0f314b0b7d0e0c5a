// Winograd over bfloat16 on every ISA, in guarded memory: what the same transform makes of the same
// numbers in float32 (held to the definition in winograd_test.cc), rounded once where it is stored.
// Where planes are rounded (winograd_rounded_test.cc), src and weights have the type of the case.
#include <random>
#include <string>
#include <vector>

#include "cc/core/conv/winograd/winograd.h"
#include "cc/core/gemm/low_precision_pack.h"
#include "tests/cc/core/conv/low_precision/low_precision_case.h"

namespace bd {
namespace {

class WinogradBf16Test : public ::testing::TestWithParam<Isa> {
 protected:
  // Numbers of bfloat16 with tails of zeros, in both types.
  void Fill(const TensorView& view, void* rounded, float* wide) {
    for (int64_t n = 0; n < view.n(); ++n) {
      for (int64_t c = 0; c < view.blocks() * view.lanes(); ++c) {
        for (int64_t p = 0; p < view.pixels(); ++p) {
          const int64_t at = view.element(n, c, p);
          StoreFloatRef(view.dtype(), c < view.c() ? normal_(rng_) : 0.f, rounded, at);
          wide[at] = LoadAsFloatRef(view.dtype(), rounded, at);
        }
      }
    }
  }

  void Run(const ConvDesc& d, const void* src, const void* weights, const float* channel,
           const void* sum, void* dst, int threads) {
    ThreadPool pool(threads);
    ConvPlan plan;
    ASSERT_EQ(MakeConvPlan(d, GetParam(), threads, &plan), "");
    ASSERT_EQ(std::string(plan.algorithm_name()).rfind("winograd", 0), 0u);
    const float* args[] = {channel, static_cast<const float*>(sum)};
    PackAndRun(plan, src, weights, args, dst, pool);
  }

  bool RoundsPlanes(const ConvDesc& d, int threads) {
    ConvPlan plan;
    EXPECT_EQ(MakeConvPlan(d, GetParam(), threads, &plan), "");
    return plan.Own<WinogradPlan>().bf16();
  }

  void Check(LowPrecisionCase c) {
    c.src = bf16;
    c.shape.algorithm = ConvAlgorithm::kWinograd;
    const Guard guard = ++turn_ % 2 == 0 ? Guard::kAtEnd : Guard::kAtStart;
    const ConvDesc d = c.Desc();
    ConvDesc f = d;
    f.src = TensorView(f32, d.src.layout(), d.src.dims());
    f.dst = TensorView(f32, d.dst.layout(), d.dst.dims());
    f.types = {};
    SCOPED_TRACE(std::string(DataTypeName(c.dst)) + " + " + DataTypeName(c.sum) + " " +
                 d.src.ToString() + " to " + d.dst.ToString() + " k" + std::to_string(d.kh()) +
                 "x" + std::to_string(d.kw()) + " " + d.post_ops.ToString());
    const TensorView added(c.sum, d.dst.layout(), {d.n(), d.oc(), d.oh(), d.ow()});
    GuardedArray src(d.src.bytes(), guard), sum(added.bytes(), guard), dst(d.dst.bytes(), guard);
    GuardedArray weights(WeightFloats(c.shape) * SizeOf(c.floats), guard), channel(d.oc() * 4);
    std::vector<float> src_wide(d.src.elements()), sum_wide(added.elements());
    std::vector<float> weights_wide(WeightFloats(c.shape)), expected(d.dst.elements());
    Fill(d.src, src.data(), src_wide.data());
    Fill(added, sum.data(), sum_wide.data());
    for (int64_t i = 0; i < WeightFloats(c.shape); ++i) {
      StoreFloatRef(c.floats, normal_(rng_), weights.data(), i);
      weights_wide[i] = PackedBfloat16(c.floats, weights.data(), i);
    }
    for (int64_t o = 0; o < d.oc(); ++o) channel.As<float>()[o] = normal_(rng_);
    const int threads = 1 + turn_ % 2;  // of both, as it may decide the transform
    Run(d, src.data(), weights.data(), channel.As<float>(), sum.data(), dst.data(), threads);
    const void *from = src_wide.data(), *by = weights_wide.data();
    if (RoundsPlanes(d, threads)) {
      f.src = d.src;
      f.types.weights = d.types.weights;
      from = src.data();
      by = weights.data();
    }
    Run(f, from, by, channel.As<float>(), sum_wide.data(), expected.data(), threads);
    GuardedArray rounded(d.dst.bytes());
    for (int64_t i = 0; i < d.dst.elements(); ++i) {
      StoreRealRef(c.dst, c.dst_quantization, expected[i], rounded.data(), i);
      ASSERT_EQ(LoadAsFloatRef(c.dst, dst.data(), i), LoadAsFloatRef(c.dst, rounded.data(), i))
          << "at " << i;
    }
  }

  std::mt19937 rng_{3};
  std::normal_distribution<float> normal_;
  int turn_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Isas, WinogradBf16Test, ::testing::ValuesIn(TestIsas(Isa::kAvx512Amx)),
                         IsaParam);

TEST_P(WinogradBf16Test, EveryWindow) {
  const int64_t windows[][2] = {{3, 3}, {5, 5}, {1, 3}, {3, 1}, {1, 7}, {7, 1}};
  const int64_t cases[][5] = {// n, ic, oc, ih, iw
                              {1, 16, 16, 4, 4},
                              {2, 20, 40, 7, 9},
                              {1, 37, 33, 17, 18},
                              {2, 16, 16, 1, 1}};
  for (const auto& [kh, kw] : windows) {
    for (const auto& [n, ic, oc, ih, iw] : cases) {
      for (int64_t pad : {0, 2, 7}) {
        LowPrecisionCase c;
        c.shape = ConvOf({n, ic, ih, iw}, oc, {kh, kw}, 1, 1, {pad, pad / 2}, {pad, pad - pad / 2});
        if (c.shape.oh < 1 || c.shape.ow < 1) continue;
        c.dst = kDstTypes[turn_ % 3];
        c.bias = turn_ % 2 == 0;
        c.floats = turn_ % 5 == 0 ? f32 : bf16;
        Check(c);
      }
    }
  }
}

TEST_P(WinogradBf16Test, ChainsAndTypes) {
  for (Layout layout : {Layout::nChw16c, Layout::nhwc}) {
    ForChainsAndTypes([&](LowPrecisionCase c) {
      const bool fused = c.dst == f32 && c.sum == f32 && c.shape.oc == 16;
      if (c.sum == u8 || (layout == Layout::nhwc && fused)) return;
      c.shape.dst_layout = layout;
      Check(c);
    });
  }
}

// Maxima of 2x2 results, of planes that fill all windows and of others.
TEST_P(WinogradBf16Test, Maxima) {
  for (DataType dst : kDstTypes) {
    for (int64_t size : {8, 11}) {
      LowPrecisionCase c;
      c.shape = Square(18, size, 24, 3, 1, 1);
      c.shape.pool_h = c.shape.pool_w = 2;
      c.dst = dst;
      c.bias = true;
      c.rest = "eltwise(relu)";
      Check(c);
    }
  }
}

// A plain source by its phases, with edges that cut through a run of colours.
TEST_P(WinogradBf16Test, FirstLayers) {
  for (int64_t ic : {1, 2, 3, 4}) {
    for (int64_t pad : {0, 3, 8}) {
      LowPrecisionCase c;
      c.shape = Square(ic, 33, 20, 7, 2, pad);
      c.shape.src_layout = Layout::nhwc;
      c.dst = kDstTypes[turn_ % 3];
      c.bias = true;
      Check(c);
    }
  }
}

}  // namespace
}  // namespace bd
