// The kernels of post_ops_kernel.h against the definition, on every ISA.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "cc/core/post_ops/post_ops.h"
#include "cc/core/post_ops/post_ops_kernel.h"
#include "tests/cc/guarded_buffer.h"
#include "tests/cc/isas.h"
#include "tests/cc/post_ops_ref.h"

namespace bd {
namespace {

constexpr int64_t kBlock = 16;

// Four operands of exactly the size that each shape has: args[0] scalar, [1]
// channel, [2] sample_channel, [3] tensor, as integers.
struct Operands {
  Operands(int64_t channels, int64_t sample_channels, int64_t elements)
      : buffers{std::make_unique<GuardedBuffer>(1), std::make_unique<GuardedBuffer>(channels),
                std::make_unique<GuardedBuffer>(sample_channels),
                std::make_unique<GuardedBuffer>(elements)} {
    for (int k = 0; k < 4; ++k) {
      buffers[k]->FillIntegers(3 + k);
      args[k] = buffers[k]->data();
    }
  }
  std::unique_ptr<GuardedBuffer> buffers[4];
  const float* args[4];
};

// What bounds are parts of: the result, or the larger x/2 of gelu_erf (eltwise_bounds.h).
double LargestTerm(const PostOpChain& chain, double src, double exact) {
  const bool cancels = chain.len() == 1 && chain.entries()[0].eltwise == EltwiseAlg::kGeluErf;
  return std::max(std::fabs(exact), cancels ? std::fabs(src / 2) : 0.);
}

// `what` says where, if it is not near.
template <typename What>
void ExpectNear(float got, double exact, double largest, double ulps, const What& what) {
  const bool near = std::isnan(exact) ? std::isnan(got)
                    : std::isinf(exact)
                        ? got == static_cast<float>(exact)
                        : std::fabs(got - exact) <= ulps * std::ldexp(largest, -23) + 1e-44;
  if (!near) ADD_FAILURE() << what() << ": " << got << ", exactly " << exact;
}

using Texts = std::vector<std::string>;

// Buffers are made once for all chains and sets: guard pages take longer than what is checked.

// One channel block of a blocked tensor [2 samples, blocks, count pixels, 16]:
// the last block of the second sample.
void CheckBlocked(const Texts& texts, int64_t channels, int count, double ulps) {
  const int64_t blocks = (channels + kBlock - 1) / kBlock, block = 2 * blocks - 1;
  const int64_t offset = block * count * kBlock, channel = (blocks - 1) * kBlock;
  const int valid = static_cast<int>(channels - channel);
  Operands operands(channels, 2 * blocks * kBlock, 2 * blocks * count * kBlock);
  GuardedBuffer src(count * kBlock), tile(count * kBlock), apart(count * kBlock);
  src.FillIntegers(5);
  for (int64_t i = 0; i < count * kBlock; ++i) {
    if (i % kBlock >= valid) src[i] = NAN;  // the tail is cleared whatever it holds
  }
  for (const std::string& text : texts) {
    const PostOpChain chain = Chain(text);
    std::vector<double> exact(count * kBlock);
    for (int64_t i = 0; i < count * kBlock; ++i) {
      const int64_t lane = i % kBlock;
      if (lane >= valid) continue;
      exact[i] = ApplyPostOpsRef(chain, src[i], operands.args, nullptr, offset + i, channel + lane,
                                 block * kBlock + lane);
    }
    for (Isa isa : TestIsas()) {
      const BoundPostOps bound(chain, isa, channels, operands.args, nullptr);
      for (bool in_place : {true, false}) {
        if (chain.len() == 0 && !in_place) continue;
        std::copy(src.begin(), src.end(), tile.begin());
        apart.Fill(NAN);
        float* dst = in_place ? tile.data() : apart.data();
        PostOpKernelsFor(isa).blocked(*bound.program(), tile.data(), dst, count, offset, channel,
                                      block * kBlock, valid);
        for (int64_t i = 0; i < count * kBlock; ++i) {
          ExpectNear(dst[i], exact[i], LargestTerm(chain, src[i], exact[i]), ulps, [&] {
            return text + ", blocked, " + IsaName(isa) + ", channels " + std::to_string(channels) +
                   (in_place ? ", in place" : "") + ", element " + std::to_string(i) + ", src " +
                   std::to_string(src[i]);
          });
        }
      }
    }
  }
}

// A row of `count` floats of the second sample of an NHWC tensor.
void CheckPlain(const Texts& texts, int64_t channels, int64_t first, int64_t count, double ulps) {
  Operands operands(channels, 2 * channels, first + count + 7);
  GuardedBuffer at_end(count), at_start(count, GuardedBuffer::kAtStart);
  at_end.FillIntegers(5);
  const std::vector<float> src(at_end.begin(), at_end.end());
  for (const std::string& text : texts) {
    const PostOpChain chain = Chain(text);
    std::vector<double> exact(count);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t c = (first + i) % channels;
      exact[i] =
          ApplyPostOpsRef(chain, src[i], operands.args, nullptr, 7 + first + i, c, channels + c);
    }
    for (Isa isa : TestIsas()) {
      const BoundPostOps bound(chain, isa, channels, operands.args, nullptr);
      for (GuardedBuffer* row : {&at_end, &at_start}) {
        std::copy(src.begin(), src.end(), row->begin());
        PostOpKernelsFor(isa).rows(*bound.program(), row->data(),
                                   {1, count, count, 7 + first, 0, first, channels, channels});
        for (int64_t i = 0; i < count; ++i) {
          ExpectNear((*row)[i], exact[i], LargestTerm(chain, src[i], exact[i]), ulps, [&] {
            return text + ", plain, " + IsaName(isa) + ", channels " + std::to_string(channels) +
                   ", first " + std::to_string(first) + ", element " + std::to_string(i);
          });
        }
      }
    }
  }
}

void CheckAll(const Texts& texts, double ulps) {
  for (int64_t channels : {1, 3, 8, 15, 16, 17, 33}) {
    for (int count : {1, 2, 7}) CheckBlocked(texts, channels, count, ulps);
    for (int64_t count : {1, 5, 16, 31, 200, 700}) {
      CheckPlain(texts, channels, 0, count, ulps);
      CheckPlain(texts, channels, channels - 1, count, ulps);
    }
  }
}

TEST(PostOpsApply, ExactAlgorithmsOnIntegers) {
  CheckAll({"", "eltwise(relu)", "eltwise(relu,alpha=2)", "eltwise(leaky_relu,alpha=0.25,scale=2)",
            "eltwise(relu6)", "eltwise(bounded_relu,alpha=4)", "eltwise(clip,alpha=-3,beta=5)",
            "eltwise(square)", "eltwise(abs,scale=-0.5)", "eltwise(linear,alpha=3,beta=-2)",
            "eltwise(linear,alpha=0.25);eltwise(round)",
            "eltwise(linear,alpha=0.25);eltwise(floor)", "eltwise(linear,alpha=0.25);eltwise(ceil)",
            "eltwise(sign)", "eltwise(hard_sigmoid,alpha=0.125,beta=0.5)",
            "eltwise(hard_swish,alpha=0.25,beta=0.5)", "eltwise(pow,alpha=3,beta=0)"},
           0.);
}

TEST(PostOpsApply, OperandsOfEveryShapeOnIntegers) {
  Texts texts = {"sum(#3,scale=2)"};
  for (const char* alg : {"add", "sub", "mul", "max", "min", "prelu"}) {
    for (const char* operand : {"scalar,#0", "channel,#1", "sample_channel,#2", "tensor,#3"}) {
      texts.push_back("binary(" + std::string(alg) + "," + operand + ")");
    }
  }
  for (const char* alg : {"greater", "greater_equal", "less", "less_equal", "equal", "not_equal",
                          "keep", "drop", "floor_div", "floor_mod"}) {
    texts.push_back("binary(" + std::string(alg) + ",tensor,#3)");
  }
  CheckAll(texts, 0.);
  CheckAll({"binary(div_no_nan,tensor,#3)", "binary(rdiv,tensor,#3)"}, 0.5);
  CheckAll(
      {"eltwise(square);binary(add,tensor,#3);eltwise(linear,beta=1000);binary(div,channel,#1)"},
      1.);
}

// The bounds of cc/simd/math/math.h plus the rounding of the scale.
TEST(PostOpsApply, SmoothAlgorithms) {
  CheckAll(
      {"eltwise(elu,alpha=0.3)", "eltwise(tanh,scale=3)", "eltwise(sqrt)", "eltwise(soft_relu)",
       "eltwise(logistic)", "eltwise(exp,scale=0.1)", "eltwise(gelu_tanh)", "eltwise(gelu_erf)",
       "eltwise(swish)", "eltwise(swish,alpha=1.702)", "eltwise(mish)", "eltwise(log)",
       "eltwise(pow,alpha=0.7,beta=3)", "eltwise(pow,beta=0.5)"},
      8.);
}

TEST(PostOpsApply, LongChain) {
  CheckAll({"binary(add,channel,#1);eltwise(relu);binary(mul,sample_channel,#2);sum(#3,scale=-1);"
            "binary(max,scalar,#0);eltwise(linear,alpha=2,beta=1);eltwise(clip,alpha=-50,beta=60)"},
           0.);
}

TEST(PostOpsApply, NanStaysNan) {
  const float nan_arg[kBlock] = {NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN,
                                 NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
  const float one_arg[kBlock] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  const float* args[] = {nan_arg, one_arg};
  std::vector<std::string> texts;
  for (int i = 0; i < kNumEltwiseAlgs; ++i) {
    PostOpChain chain;
    PostOp op = EltwisePostOp(static_cast<EltwiseAlg>(i));
    if (op.eltwise == EltwiseAlg::kPow) op.beta = 2.f;
    chain.Append(op);
    texts.push_back(chain.ToString());
  }
  for (const char* alg : {"add", "sub", "mul", "div", "max", "min", "prelu", "rdiv", "div_no_nan",
                          "floor_div", "floor_mod"}) {
    for (const char* operand : {"#0", "#1"}) {
      if (std::string(alg) == "prelu" && operand[1] == '0') continue;  // slopes of 1 are not read
      texts.push_back("binary(" + std::string(alg) + ",channel," + operand + ")");
    }
  }
  for (Isa isa : TestIsas()) {
    for (const std::string& text : texts) {
      const PostOpChain chain = Chain(text);
      const BoundPostOps bound(chain, isa, kBlock, args, nullptr);
      const bool nan_operand = text.find("#0") != std::string::npos;
      std::vector<float> tile(kBlock, nan_operand ? 1.f : NAN);
      PostOpKernelsFor(isa).blocked(*bound.program(), tile.data(), tile.data(), 1, 0, 0, 0, 16);
      for (float x : tile) EXPECT_TRUE(std::isnan(x)) << text << " on " << IsaName(isa);
    }
  }
}

// dst = s_linear * (alpha * (s_sum * dst + s_tanh * tanh(s_conv * conv)) + beta)
TEST(PostOpsApply, TanhSumLinearOfTheReference) {
  const float s_conv = 0.125f, s_tanh = 0.75f, s_sum = -1.5f, s_linear = 2.5f, alpha = 0.3f,
              beta = -0.7f;
  const PostOpChain chain = Chain(
      "eltwise(linear,alpha=0.125);eltwise(tanh,scale=0.75);sum(#0,scale=-1.5);"
      "eltwise(linear,alpha=0.3,beta=-0.7,scale=2.5)");
  for (Isa isa : TestIsas()) {
    GuardedBuffer dst(3 * kBlock), conv(3 * kBlock);
    dst.FillIntegers(1);
    conv.FillIntegers(2);
    const std::vector<float> acc(conv.begin(), conv.end());
    const float* args[] = {dst.data()};
    const BoundPostOps bound(chain, isa, kBlock, args, nullptr);
    PostOpKernelsFor(isa).blocked(*bound.program(), conv.data(), conv.data(), 3, 0, 0, 0, 16);
    for (int i = 0; i < 3 * kBlock; ++i) {
      const double inner = static_cast<double>(s_sum) * dst[i] +
                           s_tanh * std::tanh(static_cast<double>(s_conv) * acc[i]);
      EXPECT_NEAR(conv[i], s_linear * (alpha * inner + beta), 1e-6 * (1. + std::fabs(inner)))
          << IsaName(isa) << ", element " << i;
    }
  }
}

}  // namespace
}  // namespace bd
