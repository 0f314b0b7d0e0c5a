// Transposed convolution on every ISA, as its definition where sums are exact. Tensors sit in
// guarded buffers over garbage memory: an access beyond an end is a crash.
#include "cc/core/conv/conv_transpose/conv_transpose.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "cc/base/threads/thread_pool.h"
#include "tests/cc/core/conv/conv_ref.h"
#include "tests/cc/isas.h"

namespace bd {
namespace {

std::vector<double> Sums(const ConvTransposeDesc& d, const float* src, const float* weights,
                         int64_t n, int64_t y, int64_t x) {
  std::vector<double> sums(d.oc());
  for (int64_t kh = 0; kh < d.kh; ++kh) {
    for (int64_t kw = 0; kw < d.kw; ++kw) {
      const int64_t h = y + d.pad_top - kh, w = x + d.pad_left - kw;
      if (h < 0 || w < 0 || h % d.sh != 0 || w % d.sw != 0) continue;
      const int64_t r = h / d.sh, c = w / d.sw;
      if (r >= d.ih() || c >= d.iw()) continue;
      for (int64_t i = 0; i < d.ic(); ++i) {
        const double value = src[d.src.element(n, i, r * d.iw() + c)];
        for (int64_t o = 0; o < d.oc(); ++o) {
          sums[o] += value * weights[((kh * d.kw + kw) * d.oc() + o) * d.ic() + i];
        }
      }
    }
  }
  return sums;
}

// A transposed convolution by its sizes, of which the description follows.
struct TransposeShape {
  int64_t n = 1, ic = 1, ih = 1, iw = 1;
  int64_t oc = 1, oh = 1, ow = 1;
  int64_t kh = 1, kw = 1, sh = 1, sw = 1;
  int64_t pad_top = 0, pad_left = 0;
  Layout dst_layout = Layout::nChw16c;
  ConvAlgorithm algorithm = ConvAlgorithm::kAuto;
  PostOpChain post_ops;

  operator ConvTransposeDesc() const {
    ConvTransposeDesc d;
    d.src = TensorView(DataType::f32, Layout::nChw16c, {n, ic, ih, iw});
    d.dst = TensorView(DataType::f32, dst_layout, {n, oc, oh, ow});
    d.kh = kh;
    d.kw = kw;
    d.sh = sh;
    d.sw = sw;
    d.pad_top = pad_top;
    d.pad_left = pad_left;
    d.algorithm = algorithm;
    d.post_ops = post_ops;
    return d;
  }
};

// TensorFlow's SAME: dst is `s` times as large.
TransposeShape Same(int64_t ic, int64_t ih, int64_t iw, int64_t oc, int64_t k, int64_t s) {
  TransposeShape d;
  d.ic = ic;
  d.ih = ih;
  d.iw = iw;
  d.oc = oc;
  d.kh = d.kw = k;
  d.sh = d.sw = s;
  d.oh = ih * s;
  d.ow = iw * s;
  d.pad_top = d.pad_left = std::max<int64_t>(0, k - s) / 2;
  return d;
}

// Runs the plan and compares within `tolerance` of the largest magnitude; returns the algorithm.
std::string Check(const TransposeShape& d, Isa isa, ThreadPool& pool, double tolerance = 0,
                  GuardedBuffer::Guard guard = GuardedBuffer::kAtEnd) {
  ConvTransposePlan plan;
  const std::string error = MakeConvTransposePlan(d, isa, pool.num_threads(), &plan);
  EXPECT_EQ(error, "");
  SCOPED_TRACE(testing::Message() << IsaName(isa) << " " << plan.algorithm_name() << " n" << d.n
                                  << " ic" << d.ic << " oc" << d.oc << " in " << d.ih << "x" << d.iw
                                  << " out " << d.oh << "x" << d.ow << " k" << d.kh << "x" << d.kw
                                  << " s" << d.sh << "x" << d.sw << " p" << d.pad_top << "x"
                                  << d.pad_left << " " << LayoutName(d.dst_layout) << " ["
                                  << d.post_ops.ToString() << "]");
  const ConvTransposeDesc desc = d;
  GuardedBuffer src(desc.src.elements(), guard);
  GuardedBuffer weights(d.kh * d.kw * d.oc * d.ic, guard);
  GuardedBuffer channel(d.oc, guard);
  const int64_t own = desc.dst.elements();
  GuardedBuffer tensor(own, guard), expected(own), dst(own, guard);
  src.FillIntegers(1);
  ClearTails(desc.src, src.data());
  weights.FillIntegers(2);
  channel.FillIntegers(3);
  tensor.FillIntegers(4);
  ClearTails(desc.dst, tensor.data());
  const float* args[] = {channel.data(), tensor.data()};
  ResultsRef(desc.dst, d.post_ops, args, expected.data(), [&](int64_t n, int64_t y, int64_t x) {
    return Sums(desc, src.data(), weights.data(), n, y, x);
  });
  GuardedBuffer packed(plan.packed_bytes / 4);
  PackConvTransposeWeights(plan, weights.data(), packed.data(), pool);
  GuardedBuffer scratch(plan.scratch.bytes() / 4);
  RunConvTranspose(plan, {src.data(), packed.data(), args, dst.data(), scratch.data()}, pool);
  ExpectClose(dst, expected, tolerance);
  return plan.algorithm_name();
}

class ConvTransposeOnEveryIsa : public testing::TestWithParam<Isa> {
 protected:
  // Sums of integers are exact; Winograd's and those in pairs are not, so without them.
  std::string CheckBothEnds(TransposeShape d) {
    d.algorithm = ConvAlgorithm::kDirect;
    Check(d, GetParam(), pool_, 0, GuardedBuffer::kAtStart);
    return Check(d, GetParam(), pool_, 0, GuardedBuffer::kAtEnd);
  }
  ThreadPool pool_{2};
};

INSTANTIATE_TEST_SUITE_P(Isas, ConvTransposeOnEveryIsa, testing::ValuesIn(TestIsas()), IsaParam);

// Kernels smaller than the stride, which leave pixels that nothing reaches; results that are cut at
// any pixel, and end at any.
TEST_P(ConvTransposeOnEveryIsa, DrawnShapes) {
  constexpr const char* kChains[] = {"", "binary(add,channel,#0);eltwise(relu)",
                                     "sum(#1);eltwise(relu)",
                                     "binary(add,channel,#0);eltwise(linear,alpha=2,beta=1)",
                                     "binary(mul,tensor,#1);binary(sub,channel,#0)"};
  constexpr int64_t kSources[] = {3, 16, 24, 32}, kResults[] = {1, 2, 3, 5, 8, 15, 16, 17, 32, 40};
  std::mt19937 rng(1);
  const auto up_to = [&](int64_t most) { return 1 + static_cast<int64_t>(rng() % most); };
  for (int i = 0; i < 300; ++i) {
    TransposeShape d;
    d.n = up_to(2);
    d.ic = kSources[rng() % 4];
    d.oc = kResults[rng() % 10];
    d.ih = up_to(6);
    d.iw = up_to(9);
    d.kh = up_to(6);
    d.kw = up_to(6);
    d.sh = up_to(4);
    d.sw = up_to(4);
    d.oh = up_to((d.ih - 1) * d.sh + d.kh);
    d.ow = up_to((d.iw - 1) * d.sw + d.kw);
    d.pad_top = up_to(8) - 1;
    d.pad_left = up_to(8) - 1;
    if (d.oc < 16 && rng() % 2) d.dst_layout = Layout::nhwc;
    d.post_ops = Chain(kChains[rng() % 5]);
    CheckBothEnds(d);
  }
}

// A batch whose results do not fit the caches goes image by image.
TEST_P(ConvTransposeOnEveryIsa, BatchInPieces) {
  TransposeShape d = Same(16, 60, 70, 32, 2, 2);
  d.n = 3;
  CheckBothEnds(d);
}

// Winograd's rounding, on sums that are otherwise exact.
TEST_P(ConvTransposeOnEveryIsa, AnyAlgorithm) {
  for (int64_t k : {2, 3, 4, 5}) {
    TransposeShape d = Same(64, 14, 14, 64, k, 2);
    Check(d, GetParam(), pool_, 1e-5);
    d.algorithm = ConvAlgorithm::kWinograd;
    Check(d, GetParam(), pool_, 1e-5);
  }
}

TEST(ConvTransposePlan, PhasesApartWhereZerosWouldBeMultiplied) {
  ThreadPool pool(1);
  TransposeShape d = Same(64, 8, 8, 64, 3, 2);
  d.algorithm = ConvAlgorithm::kDirect;
  EXPECT_EQ(Check(d, Isa::kGeneric, pool), "apart");
  d.kh = d.kw = 2;
  d.pad_top = d.pad_left = 0;
  EXPECT_EQ(Check(d, Isa::kGeneric, pool), "together");
}

TEST(ConvTransposePlan, PacksNoZerosWhereMemoryIsScarce) {
  ThreadPool pool(1);
  TransposeShape d = Same(64, 8, 8, 64, 4, 2);
  d.algorithm = ConvAlgorithm::kAutoSmallest;
  EXPECT_EQ(Check(d, Isa::kGeneric, pool), "apart");
  ConvTransposePlan plan;
  ASSERT_EQ(MakeConvTransposePlan(d, Isa::kGeneric, 1, &plan), "");
  EXPECT_EQ(plan.packed_bytes, 4 * 4 * 64 * 64 * 4);
}

TEST(ConvTransposePlan, SaysWhatItDoesNotTake) {
  ConvTransposePlan plan;
  TransposeShape d = Same(16, 4, 4, 16, 3, 2);
  d.dst_layout = Layout::nhwc;
  EXPECT_NE(MakeConvTransposePlan(d, Isa::kGeneric, 1, &plan), "");
  d = Same(16, 4, 4, 16, 3, 17);
  EXPECT_NE(MakeConvTransposePlan(d, Isa::kGeneric, 1, &plan), "");
}

}  // namespace
}  // namespace bd
