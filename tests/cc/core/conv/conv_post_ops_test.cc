// Random chains after every form of convolution, against the definition.
//
// All steps take integers to integers, so the direct forms match bit for bit. The
// memory of dst is new, or that of a sum's operand, or holds what a sum without
// operand reads.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cc/base/threads/thread_pool.h"
#include "tests/cc/core/conv/conv_case.h"
#include "tests/cc/core/conv/conv_ref.h"
#include "tests/cc/guarded_buffer.h"
#include "tests/cc/isas.h"
#include "tests/cc/ulp.h"

namespace bd {
namespace {

// args: #0 scalar, #1 channel, #2 sample_channel, #3, #4 and #5 of dst's shape; #4
// is read by one sum at most.
constexpr int kArgs = 6, kReusable = 4;

enum class DstMemory { kNew, kOfASum, kPrevious };

struct RandomChain {
  std::string text;
  double gain = 1.;  // how much it may enlarge a difference before it
};

RandomChain MakeChain(std::mt19937& rng, DstMemory memory) {
  constexpr const char* kSteps[] = {"eltwise(relu)",
                                    "eltwise(relu,alpha=2)",
                                    "eltwise(relu6)",
                                    "eltwise(bounded_relu,alpha=90)",
                                    "eltwise(clip,alpha=-70,beta=200)",
                                    "eltwise(clip,alpha=1,beta=300)",
                                    "eltwise(abs)",
                                    "eltwise(linear,alpha=-1,beta=2)",
                                    "eltwise(linear,alpha=2,scale=-1)"};
  constexpr const char* kShapes[] = {"scalar,#0", "channel,#1", "sample_channel,#2", "tensor,#3"};
  constexpr const char* kAlgs[] = {"add", "sub", "max", "min", "mul", "prelu"};
  RandomChain chain;
  bool reused = false;
  const auto append = [&](const std::string& step) {
    chain.text += (chain.text.empty() ? "" : ";") + step;
  };
  for (int left = static_cast<int>(rng() % 7); left > 0; --left) {
    const auto kind = rng() % 3;
    if (kind == 0) {
      append(kSteps[rng() % std::size(kSteps)]);
      chain.gain *= 2.;
    } else if (kind == 1) {
      const std::string alg = kAlgs[rng() % std::size(kAlgs)];
      append("binary(" + alg + "," + kShapes[rng() % std::size(kShapes)] + ")");
      if (alg != "mul" && alg != "prelu") continue;
      append("eltwise(clip,alpha=-900,beta=900)");
      chain.gain *= 8.;
    } else if (memory == DstMemory::kPrevious) {
      append(rng() % 2 ? "sum()" : "sum(scale=-2)");
    } else {
      append(reused ? "sum(#5,scale=2)" : "sum(#4,scale=-1)");
      reused = true;
    }
  }
  return chain;
}

void Check(const ConvShape& desc, Isa isa, ThreadPool& pool, DstMemory memory, double bound) {
  const ConvPlan plan = PlanOf(desc, isa, pool.num_threads());
  SCOPED_TRACE(Describe(desc, plan));
  GuardedBuffer src(SrcFloats(desc));
  GuardedBuffer weights(WeightFloats(desc));
  src.FillIntegers(3);
  ClearSrcTail(desc, src);
  weights.FillIntegers(5);

  const int64_t floats = ResultFloats(desc);
  const int64_t stored = TensorFloats(desc.dst_layout, 1, desc.oc, 1, 1);
  const int64_t sizes[kArgs] = {1, desc.oc, desc.n * stored, floats, floats, floats};
  std::unique_ptr<GuardedBuffer> operands[kArgs];
  const float* args[kArgs];
  for (int k = 0; k < kArgs; ++k) {
    operands[k] = std::make_unique<GuardedBuffer>(sizes[k]);
    operands[k]->FillIntegers(k);
    args[k] = operands[k]->data();
    if (sizes[k] == floats) {
      ClearResultTail(desc, *operands[k]);
    }
  }
  GuardedBuffer dst(floats), expected(floats);
  if (memory != DstMemory::kNew) {
    memcpy(dst.data(), args[kReusable], floats * sizeof(float));
    memcpy(expected.data(), args[kReusable], floats * sizeof(float));
  }
  ConvRef(desc, src.data(), weights.data(), args, expected.data());
  if (memory == DstMemory::kOfASum) args[kReusable] = dst.data();
  PackAndRun(plan, src.data(), weights.data(), args, dst.data(), pool);
  for (int64_t i = 0; i < floats; ++i) {
    ASSERT_LE(std::fabs(static_cast<double>(dst[i]) - expected[i]), bound)
        << "at " << i << ": " << dst[i] << " for " << expected[i];
  }
}

struct Form {
  const char* name;
  const char* algorithm;
  ConvShape desc;
};

ConvShape Kept(ConvShape d) {
  d.keeps_weights = true;
  return d;
}

// By "auto", whose groups of one block are multiplied together.
ConvShape Chosen(ConvShape d) {
  d.algorithm = ConvAlgorithm::kAuto;
  return d;
}

ConvShape Rows(int64_t samples, int64_t rows, int64_t ic, int64_t oc, Layout dst_layout) {
  ConvShape d = ConvOf({samples, ic, 1, rows}, oc, 1);
  d.src_layout = Layout::nhwc;
  d.dst_layout = dst_layout;
  return d;
}

std::vector<Form> Forms() {
  const auto square = [](int64_t n, int64_t ic, int64_t oc, int64_t k, int64_t groups = 1,
                         Layout src = Layout::nChw16c, Layout dst = Layout::nChw16c) {
    ConvShape d = Square(ic, 6, oc, k, 1, k / 2);
    d.n = n;
    d.groups = groups;
    d.src_layout = src;
    d.dst_layout = dst;
    d.algorithm = ConvAlgorithm::kDirect;
    return d;
  };
  const auto winograd = [&](int64_t size, int64_t kh, int64_t kw) {
    const Axes pad(kh / 2, kw / 2);
    ConvShape d = ConvOf({2, 20, size, size}, 37, {kh, kw}, 1, 1, pad, pad);
    d.algorithm = ConvAlgorithm::kWinograd;
    return d;
  };
  const auto wide = [](ConvShape d) {
    d.iw = d.ow = 23;
    return d;
  };
  const auto to_plain = [](ConvShape d) {
    d.dst_layout = Layout::nhwc;
    return d;
  };
  const Layout plain = Layout::nhwc, blocked = Layout::nChw16c;
  ConvShape first = Square(3, 13, 37, 7, 2, 3);
  first.n = 2;
  first.src_layout = plain;
  first.algorithm = ConvAlgorithm::kWinograd;
  return {
      {"direct", "direct", square(2, 20, 37, 3)},
      {"several_chunks", "direct", square(1, 400, 37, 3)},
      {"pointwise", "direct", square(2, 24, 40, 1)},
      {"projection", "direct", wide(square(2, 48, 40, 1))},
      {"groups_that_straddle", "lanes", square(2, 21, 33, 3, 3)},
      {"groups_that_straddle_together", "direct", Chosen(square(2, 21, 33, 3, 3))},
      {"depthwise", "depthwise", square(2, 37, 37, 3, 37)},
      {"depthwise_wide", "depthwise", wide(square(2, 37, 37, 3, 37))},
      {"depthwise_any_window", "depthwise", wide(square(1, 37, 37, 7, 37))},
      {"plain_src", "direct_plain", square(2, 3, 37, 3, 1, plain)},
      {"plain_dst", "direct", square(2, 20, 37, 3, 1, blocked, plain)},
      {"plain_dst_groups", "lanes", square(2, 12, 20, 3, 4, blocked, plain)},
      {"plain_dst_groups_together", "direct", Chosen(square(2, 12, 20, 3, 4, blocked, plain))},
      {"dot", "dot", square(2, 20, 3, 3, 1, blocked, plain)},
      {"both_plain", "direct_plain", square(2, 5, 37, 3, 1, plain, plain)},
      {"inner_product", "gemm", Rows(1, 40, 50, 37, plain)},
      {"inner_product_deep", "gemm", Rows(1, 40, 450, 37, plain)},  // several passes over ic
      {"inner_product_samples", "gemm", Rows(3, 5, 50, 37, plain)},
      {"inner_product_kept", "gemm", Kept(Rows(1, 40, 50, 600, plain))},
      {"weights_as_they_are", "rows", Rows(1, 2, 300, 64, plain)},
      {"few_rows_odd", "rows", Rows(1, 2, 37, 43, plain)},
      {"few_rows_kept", "rows", Kept(Rows(1, 2, 37, 43, plain))},
      {"few_rows_blocked_dst", "direct_plain", Rows(1, 2, 300, 64, blocked)},
      {"winograd_small", "winograd2x2", winograd(5, 3, 3)},
      {"winograd_large", "winograd4x4", winograd(14, 3, 3)},
      {"winograd_first", "winograd3x3", first},
      {"winograd_plain", "winograd4x4", to_plain(winograd(14, 3, 3))},
      {"winograd_plain_row", "winograd1x3", to_plain(winograd(8, 1, 7))},
      {"winograd_5x5", "winograd2x2", winograd(7, 5, 5)},
      {"winograd_row", "winograd1x3", winograd(8, 1, 7)},
      {"winograd_column", "winograd4x1", winograd(7, 3, 1)},
  };
}

class ConvPostOps : public testing::TestWithParam<Form> {};

TEST_P(ConvPostOps, AnyChainInAnyOrder) {
  const Form& form = GetParam();
  ThreadPool pool(2);
  std::mt19937 rng(1);
  for (DstMemory memory : {DstMemory::kNew, DstMemory::kOfASum, DstMemory::kPrevious}) {
    for (int i = 0; i < 12; ++i) {
      const RandomChain chain = MakeChain(rng, memory);
      ConvShape desc = form.desc;
      desc.post_ops = Chain(chain.text);
      const bool winograd = desc.algorithm == ConvAlgorithm::kWinograd;
      for (Isa isa : TestIsas()) {
        Check(desc, isa, pool, memory, winograd ? 0.02 * chain.gain : 0.);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(ConvPostOps, IsTheFormItsNameSays) {
  EXPECT_STREQ(PlanOf(GetParam().desc, DetectIsa()).algorithm_name(), GetParam().algorithm);
}

INSTANTIATE_TEST_SUITE_P(Forms, ConvPostOps, testing::ValuesIn(Forms()),
                         [](const auto& info) { return std::string(info.param.name); });

// Kernels take swish from their registers unless sums are out of its reach: small ones are
// all within, large ones are not, and a few of those in between.
TEST(ConvPostOpsSwish, WithinReachAndBeyond) {
  ThreadPool pool(2);
  for (const Form& form : Forms()) {
    ConvShape desc = form.desc;
    if (desc.algorithm == ConvAlgorithm::kWinograd) continue;
    for (float unit : {1.f / 256, 1.f / 16, 1.f}) {
      GuardedBuffer src(SrcFloats(desc));
      GuardedBuffer weights(WeightFloats(desc));
      src.FillIntegers(3);
      weights.FillIntegers(5);
      for (int64_t i = 0; i < weights.size(); ++i) weights[i] *= unit;
      ClearSrcTail(desc, src);
      const int64_t floats = ResultFloats(desc);
      GuardedBuffer conv(floats);
      desc.post_ops = PostOpChain();
      ConvRef(desc, src.data(), weights.data(), nullptr, conv.data());
      desc.post_ops = Chain("eltwise(swish)");
      for (Isa isa : TestIsas()) {
        const ConvPlan plan = PlanOf(desc, isa);
        ASSERT_TRUE(plan.epilogue.silu);
        GuardedBuffer dst(floats);
        PackAndRun(plan, src.data(), weights.data(), nullptr, dst.data(), pool);
        for (int64_t i = 0; i < floats; ++i) {
          const double exact = conv[i] / (1. + std::exp(-static_cast<double>(conv[i])));
          ASSERT_LE(UlpError(dst[i], exact), 3.6)
              << form.name << " on " << IsaName(isa) << ": " << conv[i] << " gives " << dst[i];
        }
      }
    }
  }
}

}  // namespace
}  // namespace bd
