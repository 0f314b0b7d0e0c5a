// The chain as a value: text, messages, properties, binding.
#include "cc/core/post_ops/post_ops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "cc/core/post_ops/post_op_names.h"
#include "tests/cc/post_ops_ref.h"

namespace bd {
namespace {

std::string ErrorOf(const std::string& text) {
  PostOpChain chain = Chain("eltwise(tanh)");
  std::string error;
  EXPECT_FALSE(PostOpChain::Parse(text, &chain, &error)) << text;
  EXPECT_EQ(chain.ToString(), "eltwise(tanh)") << "a failed parse must leave the chain alone";
  EXPECT_EQ(error.find('\n'), std::string::npos);
  return error;
}

TEST(PostOpsText, ParsesEveryField) {
  const PostOpChain chain =
      Chain("binary(max,sample_channel,#3@2304);sum(#1,scale=0.5);eltwise(clip,alpha=-1,beta=6)");
  ASSERT_EQ(chain.len(), 3);
  EXPECT_EQ(chain.entries()[0].kind, PostOpKind::kBinary);
  EXPECT_EQ(chain.entries()[1].kind, PostOpKind::kSum);
  EXPECT_EQ(chain.entries()[2].kind, PostOpKind::kEltwise);
  const PostOp& binary = chain.entries()[0];
  EXPECT_EQ(binary.binary, BinaryAlg::kMax);
  EXPECT_EQ(binary.shape, OperandShape::kSampleChannel);
  EXPECT_EQ(binary.operand.input, 3);
  EXPECT_EQ(binary.operand.offset, 2304);
  EXPECT_EQ(chain.entries()[1].operand.input, 1);
  EXPECT_EQ(chain.entries()[1].scale, 0.5f);
  EXPECT_EQ(chain.entries()[2].eltwise, EltwiseAlg::kClip);
  EXPECT_EQ(chain.entries()[2].alpha, -1.f);
  EXPECT_EQ(chain.entries()[2].beta, 6.f);
}

TEST(PostOpsText, CanonicalForm) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", ""},
      {"  ", ""},
      {" eltwise( relu ) ; sum( #0 , scale = 2 ) ", "eltwise(relu);sum(#0,scale=2)"},
      {"eltwise(softplus)", "eltwise(soft_relu)"},
      {"eltwise(sigmoid)", "eltwise(logistic)"},
      {"eltwise(silu,alpha=1,scale=1)", "eltwise(swish)"},
      {"eltwise(relu,alpha=0)", "eltwise(relu)"},
      {"eltwise(linear,scale=2,beta=3,alpha=4)", "eltwise(linear,alpha=4,beta=3,scale=2)"},
      {"eltwise(hard_sigmoid,alpha=0.2)", "eltwise(hard_sigmoid,alpha=0.200000003)"},
      {"eltwise(pow,beta=0.5)", "eltwise(pow,beta=0.5)"},
      {"eltwise(leaky_relu,alpha=1e-3)", "eltwise(leaky_relu,alpha=0.00100000005)"},
      {"sum(#1@0)", "sum(#1)"},
      {"sum( )", "sum()"},
      {"sum(scale=1)", "sum()"},
      {" sum( scale=0.5 )", "sum(scale=0.5)"},
      {"binary(add,channel,#0@0)", "binary(add,channel,#0)"},
  };
  for (const auto& [text, canonical] : cases) EXPECT_EQ(Chain(text).ToString(), canonical);
}

TEST(PostOpsText, EveryAlgorithmComesBack) {
  for (int i = 0; i < kNumEltwiseAlgs; ++i) {
    PostOpChain chain;
    chain.Append(EltwisePostOp(static_cast<EltwiseAlg>(i)));
    EXPECT_EQ(Chain(chain.ToString()), chain);
    EXPECT_EQ(Chain(chain.ToString()).entries()[0].eltwise, static_cast<EltwiseAlg>(i));
    EXPECT_EQ(Chain(chain.ToString()).entries()[0].alpha, chain.entries()[0].alpha);
    EXPECT_EQ(Chain(chain.ToString()).entries()[0].beta, chain.entries()[0].beta);
  }
}

TEST(PostOpsText, FloatsComeBackBitForBit) {
  uint32_t state = 1;
  for (int i = 0; i < 20000; ++i) {
    state = state * 1664525u + 1013904223u;
    float value;
    memcpy(&value, &state, sizeof value);
    if (!(value - value == 0.f)) continue;  // inf and NaN
    PostOp op = EltwisePostOp(EltwiseAlg::kLeakyRelu);
    op.alpha = value;
    PostOpChain chain;
    chain.Append(op);
    const PostOpChain back = Chain(chain.ToString());
    ASSERT_EQ(memcmp(&back.entries()[0].alpha, &value, sizeof value), 0) << chain.ToString();
  }
}

TEST(PostOpsText, ErrorsNameTheEntryAndTheRemedy) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"eltwise(reluu)",
       "entry 0 \"eltwise(reluu)\": unknown algorithm \"reluu\"; known are " + EltwiseNames()},
      {"eltwise(relu);eltwise()",
       "entry 1 \"eltwise()\": unknown algorithm \"\"; known are " + EltwiseNames()},
      {"eltwise(leaky_relu)", "entry 0 \"eltwise(leaky_relu)\": leaky_relu needs alpha=..."},
      {"eltwise(tanh,alpha=1)",
       "entry 0 \"eltwise(tanh,alpha=1)\": tanh does not take \"alpha=1\"; it takes each of "
       "scale=... once"},
      {"eltwise(elu,alpha=1,alpha=2)",
       "entry 0 \"eltwise(elu,alpha=1,alpha=2)\": elu does not take \"alpha=2\"; it takes each of "
       "alpha=..., scale=... once"},
      {"eltwise(elu,alpha)",
       "entry 0 \"eltwise(elu,alpha)\": elu does not take \"alpha\"; it takes each of alpha=..., "
       "scale=... once"},
      {"eltwise(elu,alpha=1x)",
       "entry 0 \"eltwise(elu,alpha=1x)\": alpha = \"1x\" is no finite float; write one as 0.25 or "
       "1e-3"},
      {"sum(0)", "entry 0 \"sum(0)\": sum does not take \"0\"; it takes each of scale=... once"},
      {"sum(,scale=2)",
       "entry 0 \"sum(,scale=2)\": sum does not take \"\"; it takes each of scale=... once"},
      {"binary(add,channel)",
       "entry 0 \"binary(add,channel)\": binary takes three arguments, as in "
       "binary(add,channel,#0)"},
      {"binary(plus,channel,#0)",
       "entry 0 \"binary(plus,channel,#0)\": unknown algorithm \"plus\"; known are " +
           BinaryNames()},
      {"binary(add,rows,#0)",
       "entry 0 \"binary(add,rows,#0)\": unknown operand shape \"rows\"; known are scalar, "
       "channel, sample_channel, tensor"},
      {"binary(add,channel,0)",
       "entry 0 \"binary(add,channel,0)\": \"0\" is no operand; write the args input as #0, or as "
       "#0@128 from element 128"},
      {"eltwise(relu)eltwise(tanh)",
       "entry 0 \"eltwise(relu)eltwise(tanh)\": text after the entry: \"eltwise(tanh)\"; join "
       "entries with ;"},
      {"eltwise(relu);", "entry 1 \"\": an entry is eltwise(...), sum(...) or binary(...)"},
      {"relu", "entry 0 \"relu\": an entry is eltwise(...), sum(...) or binary(...)"},
      {"conv(relu)",
       "entry 0 \"conv(relu)\": unknown kind \"conv\"; known are eltwise, sum, binary"},
  };
  for (const auto& [text, error] : cases) EXPECT_EQ(ErrorOf(text), error);
}

TEST(PostOpsText, MalformedNumbersAndOperands) {
  for (const char* number : {"", "1e", "--1", "+1", "0x10", "nan", "inf", "-inf", "1e50", "1e-60",
                             "1,5", "1 2", "1.5f"}) {
    EXPECT_NE(ErrorOf("eltwise(elu,alpha=" + std::string(number) + ")"), "") << number;
  }
  for (const char* operand : {"#", "#-1", "#+1", "#1.5", "#x", "#0@", "#0@-1", "#0@x", "#0@1@2",
                              "# 1", "#99999999999", "#0@99999999999999999999"}) {
    EXPECT_NE(ErrorOf("sum(" + std::string(operand) + ")"), "") << operand;
  }
}

TEST(PostOpsText, AtMost32Entries) {
  std::string text = "eltwise(abs)";
  for (int i = 1; i < PostOpChain::kMaxEntries; ++i) text += ";eltwise(abs)";
  PostOpChain full = Chain(text);
  EXPECT_EQ(full.len(), 32);
  EXPECT_EQ(full.Append(EltwisePostOp(EltwiseAlg::kAbs)),
            "entry 32 \"eltwise(abs)\": a chain has at most 32 entries; split it over two ops");
  EXPECT_EQ(full.len(), 32);
  EXPECT_EQ(ErrorOf(text + ";eltwise(abs)"),
            "entry 32 \"eltwise(abs)\": a chain has at most 32 entries; split it over two ops");
}

TEST(PostOps, MakersWriteTheText) {
  PostOpChain chain;
  EXPECT_EQ(chain.len(), 0);
  EXPECT_EQ(chain.Append(EltwisePostOp(EltwiseAlg::kTanh)), "");
  EXPECT_EQ(chain.Append(SumPostOp(0.5f)), "");
  EXPECT_EQ(chain.Append(SumPostOp(2.f, {3, 0})), "");
  EXPECT_EQ(chain.Append(BinaryPostOp(BinaryAlg::kMul, OperandShape::kChannel, {1, 128})), "");
  EXPECT_EQ(chain.Append(EltwisePostOp(EltwiseAlg::kLinear, 2.f, 1.f, 0.5f)), "");
  EXPECT_EQ(chain.ToString(),
            "eltwise(tanh);sum(scale=0.5);sum(#3,scale=2);binary(mul,channel,#1@128);"
            "eltwise(linear,alpha=2,beta=1,scale=0.5)");
  EXPECT_EQ(chain, Chain(chain.ToString()));
  EXPECT_EQ(chain.len(), 5);
  EXPECT_EQ(chain.entries()[1].kind, PostOpKind::kSum);
  EXPECT_EQ(chain.entries()[3].kind, PostOpKind::kBinary);
  EXPECT_EQ(chain.entries()[4].kind, PostOpKind::kEltwise);
}

TEST(PostOps, AppendRefusesWhatNoTextCanSay) {
  PostOpChain chain = Chain("eltwise(tanh)");
  EXPECT_EQ(chain.Append(EltwisePostOp(EltwiseAlg::kElu, NAN, 0.f)),
            "entry 1 \"eltwise(elu,alpha=nan)\": alpha, beta and scale must be finite");
  EXPECT_EQ(chain.Append(SumPostOp(INFINITY)),
            "entry 1 \"sum(scale=inf)\": alpha, beta and scale must be finite");
  EXPECT_EQ(chain.Append(BinaryPostOp(BinaryAlg::kAdd, OperandShape::kTensor, {})),
            "entry 1 \"binary(add,tensor,)\": binary needs the index of its operand in args");
  EXPECT_EQ(chain.ToString(), "eltwise(tanh)");
}

TEST(PostOps, CopiesAreIndependent) {
  PostOpChain original = Chain("eltwise(relu)");
  const PostOpChain copy = original;
  EXPECT_EQ(copy, original);
  original.Append(EltwisePostOp(EltwiseAlg::kTanh));
  EXPECT_EQ(copy.len(), 1);
  EXPECT_NE(copy, original);
}

TEST(PostOps, PreservesZero) {
  for (const char* text :
       {"", "eltwise(relu)", "eltwise(clip,alpha=-1,beta=1)", "eltwise(linear,alpha=2)",
        "eltwise(pow,beta=0.5)", "eltwise(gelu_erf)", "eltwise(mish,scale=3)", "sum(#0,scale=2)",
        "binary(add,channel,#0)", "binary(mul,tensor,#0)", "eltwise(hard_swish)"}) {
    EXPECT_TRUE(Chain(text).PreservesZero()) << text;
  }
  for (const char* text :
       {"eltwise(logistic)", "eltwise(exp)", "eltwise(soft_relu)", "eltwise(log)",
        "eltwise(linear,beta=1)", "eltwise(clip,alpha=1,beta=2)", "eltwise(clip,alpha=-2,beta=-1)",
        "eltwise(bounded_relu,alpha=-1)", "eltwise(hard_sigmoid)", "eltwise(pow,beta=0)",
        "eltwise(pow,beta=-1)", "binary(add,scalar,#0)", "binary(div,channel,#0)",
        "eltwise(exp);eltwise(log)"}) {
    EXPECT_FALSE(Chain(text).PreservesZero()) << text;
  }
}

TEST(PostOps, ReusableInputs) {
  using Inputs = std::vector<int>;
  EXPECT_EQ(Chain("eltwise(relu)").ReusableInputs(), Inputs());
  EXPECT_EQ(Chain("binary(add,channel,#0);sum(#2,scale=3)").ReusableInputs(), Inputs({2}));
  EXPECT_EQ(Chain("sum(#1);sum(#0)").ReusableInputs(), Inputs({1, 0}));
  EXPECT_EQ(Chain("sum(#1);binary(mul,tensor,#1);sum(#0)").ReusableInputs(), Inputs({0}));
  EXPECT_EQ(Chain("sum(#1);sum(#1)").ReusableInputs(), Inputs());
  EXPECT_EQ(Chain("sum(#1@16)").ReusableInputs(), Inputs());
  EXPECT_EQ(Chain("sum();sum(#0)").ReusableInputs(), Inputs({0}));
}

TEST(PostOps, HasSum) {
  EXPECT_TRUE(Chain("eltwise(relu);sum(#0)").HasSum());
  EXPECT_TRUE(Chain("sum()").HasSum());
  EXPECT_FALSE(Chain("eltwise(relu);binary(add,tensor,#0)").HasSum());
}

TEST(BoundPostOps, PadsChannelOperandsOnly) {
  std::vector<float> arg(64);
  for (size_t i = 0; i < arg.size(); ++i) arg[i] = 1.f + i;
  const float* args[] = {arg.data(), arg.data()};
  const PostOpChain chain =
      Chain("binary(add,channel,#0@2);sum(#1,scale=2);binary(mul,channel,#1);eltwise(elu,alpha=3)");

  const BoundPostOps odd(chain, Isa::kGeneric, 17, args, nullptr);
  const PostOpProgram& program = *odd.program();
  ASSERT_EQ(program.count, 4);
  EXPECT_TRUE(program.preserves_zero);
  for (int step : {0, 2}) {
    const float first = step == 0 ? 3.f : 1.f;
    for (int c = 0; c < 32; ++c) {
      EXPECT_EQ(program.steps[step].operand[c], c < 17 ? first + c : 0.f);
    }
  }
  EXPECT_EQ(program.steps[1].operand, arg.data());
  EXPECT_EQ(program.steps[1].scale, 2.f);
  EXPECT_EQ(program.steps[3].operand, nullptr);
  EXPECT_EQ(program.steps[3].alpha, 3.f);

  const BoundPostOps whole(chain, Isa::kGeneric, 16, args, nullptr);
  EXPECT_EQ(whole.program()->steps[0].operand, arg.data() + 2);
}

TEST(BoundPostOps, ASumWithoutOperandReadsDst) {
  const float dst[16] = {}, other[16] = {};
  const float* args[] = {other};
  const BoundPostOps bound(Chain("sum();sum(#0)"), Isa::kGeneric, 16, args, dst);
  EXPECT_EQ(bound.program()->steps[0].operand, dst);
  EXPECT_EQ(bound.program()->steps[1].operand, other);
}

}  // namespace
}  // namespace bd
