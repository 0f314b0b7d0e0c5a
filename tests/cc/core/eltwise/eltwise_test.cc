#include "cc/core/eltwise/eltwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "tests/cc/core/eltwise/eltwise_ref.h"
#include "tests/cc/guarded_buffer.h"
#include "tests/cc/isas.h"
#include "tests/cc/layouts.h"
#include "tests/cc/typed_tensor.h"

namespace bd {
namespace {

EltwiseDesc Desc(int64_t n, int64_t channels, int64_t pixels, bool blocked,
                 const std::string& text) {
  EltwiseDesc desc;
  const Layout layout = blocked ? Layout::nChw16c : Layout::nhwc;
  desc.src = desc.dst = TensorView(DataType::f32, layout, {n, channels, pixels, 1});
  desc.post_ops = Chain(text);
  return desc;
}

EltwisePlan Plan(const EltwiseDesc& desc, Isa isa) {
  EltwisePlan plan;
  EXPECT_EQ(MakeEltwisePlan(desc, isa, &plan), "");
  return plan;
}

// Integers with a zero tail.
void FillTensor(const TensorView& view, int64_t seed, GuardedBuffer* buffer) {
  buffer->FillIntegers(seed);
  ClearTails(view, buffer->data());
}

// args: #0 scalar, #1 channel, #2 sample_channel, #3 tensor.
void Check(const EltwiseDesc& desc, Isa isa, ThreadPool& pool, double tolerance) {
  const TensorView& view = desc.src;
  const TensorView whole(view.dtype(), view.layout(), view.dims());  // operands are
  const int64_t stored = view.blocks() * view.lanes(), elements = view.elements();
  GuardedBuffer src(elements), tensor(whole.elements()), dst(elements), expected(elements);
  GuardedBuffer scalar(1), channel(view.c()), sample(view.n() * stored);
  FillTensor(view, 1, &src);
  FillTensor(whole, 2, &tensor);
  dst.Fill(77.f);  // between the images of a part
  expected.Fill(77.f);
  scalar.FillIntegers(3);
  channel.FillIntegers(4);
  sample.FillIntegers(5);
  const float* args[] = {scalar.data(), channel.data(), sample.data(), tensor.data()};
  EltwiseRef(desc, src.data(), args, expected.data());
  RunEltwise(Plan(desc, isa), src.data(), args, dst.data(), pool);
  for (int64_t i = 0; i < elements; ++i) {
    ASSERT_NEAR(dst[i], expected[i], tolerance * std::fabs(expected[i]))
        << IsaName(isa) << ", " << view.ToString() << ", " << desc.post_ops.ToString()
        << ", element " << i;
  }
}

TEST(Eltwise, ChainsOverBothLayouts) {
  ThreadPool pool(2);
  for (Isa isa : TestIsas()) {
    for (bool blocked : {true, false}) {
      for (int64_t channels : {1, 3, 16, 17, 40}) {
        for (int64_t pixels : {1, 5, 67, 200}) {
          for (const char* text :
               {"", "binary(add,tensor,#3);eltwise(relu)", "binary(mul,sample_channel,#2)",
                "binary(add,channel,#1);eltwise(linear,alpha=2,beta=3);sum(#3,scale=2);"
                "binary(sub,scalar,#0)"}) {
            Check(Desc(2, channels, pixels, blocked, text), isa, pool, 0.);
          }
        }
      }
    }
  }
}

TEST(Eltwise, ManyTasks) {
  ThreadPool pool(2);
  for (Isa isa : TestIsas()) {
    for (bool blocked : {true, false}) {
      const EltwiseDesc desc = Desc(3, 19, 3001, blocked,
                                    "binary(add,channel,#1);binary(max,sample_channel,#2);"
                                    "binary(mul,tensor,#3)");
      EXPECT_GT(Plan(desc, isa).tasks, 2);
      Check(desc, isa, pool, 0.);
    }
  }
}

// Every algorithm, with parameters that give f(0) != 0 where some do, over NaN in
// the tails of the source.
TEST(Eltwise, TailsStayZero) {
  std::vector<std::string> texts = {"binary(div,channel,#1)", "binary(add,scalar,#1)",
                                    "eltwise(exp);eltwise(log)"};
  for (int i = 0; i < kNumEltwiseAlgs; ++i) {
    PostOpChain chain;
    chain.Append(EltwisePostOp(static_cast<EltwiseAlg>(i), 1.f, 2.f, 3.f));
    texts.push_back(chain.ToString());
  }
  ThreadPool pool(1);
  for (Isa isa : TestIsas()) {
    for (const std::string& text : texts) {
      const EltwiseDesc desc = Desc(2, 21, 9, true, text);
      GuardedBuffer src(2 * 32 * 9), dst(2 * 32 * 9), channel(21);
      src.Fill(NAN);
      channel.Fill(2.f);
      const float* args[] = {nullptr, channel.data()};
      RunEltwise(Plan(desc, isa), src.data(), args, dst.data(), pool);
      for (size_t i = 0; i < dst.size(); ++i) {
        const int64_t c = i / (16 * 9) % 2 * 16 + i % 16;
        if (c < 21) continue;
        EXPECT_EQ(dst[i], 0.f) << text << " on " << IsaName(isa) << ", element " << i;
      }
    }
  }
}

TEST(Eltwise, ASumWithoutOperandReadsDst) {
  ThreadPool pool(2);
  const EltwiseDesc desc =
      Desc(2, 20, 700, true, "eltwise(square);sum(scale=3);eltwise(abs);sum()");
  const int64_t elements = 2 * 32 * 700;
  GuardedBuffer src(elements), before(elements), expected(elements);
  FillTensor(desc.src, 1, &src);
  FillTensor(desc.src, 2, &before);
  memcpy(expected.data(), before.data(), elements * sizeof(float));
  EltwiseRef(desc, src.data(), nullptr, expected.data());
  for (Isa isa : TestIsas()) {
    GuardedBuffer dst(elements);
    memcpy(dst.data(), before.data(), elements * sizeof(float));
    RunEltwise(Plan(desc, isa), src.data(), nullptr, dst.data(), pool);
    EXPECT_EQ(memcmp(dst.data(), expected.data(), elements * sizeof(float)), 0) << IsaName(isa);
  }
}

TEST(Eltwise, DstMayBeSrcOrTheSumOperand) {
  ThreadPool pool(2);
  const EltwiseDesc desc =
      Desc(2, 20, 700, true, "eltwise(square);sum(#0,scale=3);binary(sub,tensor,#1)");
  const int64_t elements = 2 * 32 * 700;
  GuardedBuffer src(elements), sum(elements), expected(elements);
  FillTensor(desc.src, 1, &src);
  FillTensor(desc.src, 2, &sum);
  const float* args[] = {sum.data(), src.data()};
  EltwiseRef(desc, src.data(), args, expected.data());
  for (Isa isa : TestIsas()) {
    for (bool over_src : {true, false}) {
      GuardedBuffer a(elements), b(elements);
      memcpy(a.data(), src.data(), elements * sizeof(float));
      memcpy(b.data(), sum.data(), elements * sizeof(float));
      const float* in_place[] = {b.data(), a.data()};
      float* dst = over_src ? a.data() : b.data();
      RunEltwise(Plan(desc, isa), a.data(), in_place, dst, pool);
      EXPECT_EQ(memcmp(dst, expected.data(), elements * sizeof(float)), 0) << IsaName(isa);
    }
  }
}

TEST(Eltwise, EmptyTensorsAndBadSizes) {
  ThreadPool pool(1);
  const EltwiseDesc empty = Desc(0, 5, 9, true, "eltwise(relu)");
  EXPECT_EQ(Plan(empty, Isa::kGeneric).tasks, 0);
  RunEltwise(Plan(empty, Isa::kGeneric), nullptr, nullptr, nullptr, pool);
  EltwisePlan plan;
  EXPECT_EQ(MakeEltwisePlan(Desc(1, 0, 9, true, ""), Isa::kGeneric, &plan),
            "element-wise work needs channels, got float32 nChw16c [1, 0, 9, 1]");
}

// Other types: the bits that reorders to float32 and back give around the work on float32.
TEST(Eltwise, OfEveryType) {
  ThreadPool pool(2);
  for (Isa isa : TestIsas()) {
    for (const ElementType& from : kElementTypes) {
      for (const ElementType& to : kElementTypes) {
        for (bool blocked : {true, false}) {
          for (int64_t pixels : {5, 700}) {
            EltwiseDesc f32 = Desc(2, 21, pixels, blocked,
                                   "binary(add,tensor,#3);binary(mul,channel,#1);eltwise(relu)");
            if (blocked) f32.post_ops.Append(SumPostOp(0.5f, {4, 0}));
            TypedTensor src(f32.src, from, isa, pool), tensor(f32.src, to, isa, pool);
            TypedTensor sum(f32.src, from, isa, pool), dst(f32.src, to, isa, pool);
            GuardedBuffer channel(21);
            channel.FillIntegers(4);
            const float* const floats[] = {nullptr, channel.data(), nullptr, tensor.floats(),
                                           sum.floats()};
            RunEltwise(Plan(f32, isa), src.floats(), floats, dst.floats(), pool);
            dst.Expect();
            EltwiseDesc desc = f32;
            desc.src = src.view(), desc.dst = dst.view();
            desc.src_quantization = from.quantization, desc.dst_quantization = to.quantization;
            desc.arg_types = {{}, {}, {}, to, from};
            const float* const args[] = {nullptr, channel.data(), nullptr, tensor.as_floats(),
                                         sum.as_floats()};
            RunEltwise(Plan(desc, isa), src.data(), args, dst.data(), pool);
            EXPECT_EQ(dst.Difference(), -1)
                << IsaName(isa) << " " << desc.src.ToString() << " to " << desc.dst.ToString();
          }
        }
      }
    }
  }
}

// Chains that are one affine map by channel have loops of their own for types of low precision.
TEST(Eltwise, AffineMapsOfNarrowTypes) {
  ThreadPool pool(2);
  const ElementType types[][2] = {{{DataType::u8, {0.5f, 100}}, {DataType::u8, {0.25f, 60}}},
                                  {{DataType::bf16, {}}, {DataType::bf16, {}}}};
  constexpr int64_t kChannels = 21;
  GuardedBuffer channel(kChannels), sample(2 * 32);
  channel.FillIntegers(4);
  sample.FillIntegers(5);
  sample[3] = NAN;
  const float* const args[] = {nullptr, channel.data(), sample.data()};
  for (Isa isa : TestIsas(Isa::kAvx512Bf16)) {
    for (const char* text :
         {"", "binary(mul,sample_channel,#2)", "binary(mul,channel,#1);binary(add,channel,#1)",
          "eltwise(linear,alpha=2,beta=3);eltwise(relu)", "eltwise(relu6)", "eltwise(abs)"}) {
      for (const auto& [from, to] : types) {
        for (int64_t pixels : {1, 700}) {
          SCOPED_TRACE(text);
          CheckTypes(Desc(2, kChannels, pixels, true, text), from, to, isa, pool,
                     [&](const EltwiseDesc& d, const void* src, void* dst) {
                       RunEltwise(Plan(d, isa), src, args, dst, pool);
                     });
        }
      }
    }
  }
}

TEST(Eltwise, NamesWhatIsWrong) {
  const auto error_of = [](const TensorView& src, const TensorView& dst) {
    EltwiseDesc desc;
    desc.src = src;
    desc.dst = dst;
    EltwisePlan plan;
    return MakeEltwisePlan(desc, Isa::kGeneric, &plan);
  };
  const TensorView blocked(DataType::f32, Layout::nChw16c, {1, 3, 2, 2});
  const TensorView eight(DataType::f32, Layout::nChw8c, {1, 3, 2, 2});
  const TensorView first(DataType::f32, Layout::nchw, {1, 3, 2, 2});
  const TensorView last(DataType::f32, Layout::nhwc, {1, 3, 2, 2});
  EltwiseDesc typed = Desc(1, 3, 4, true, "binary(mul,channel,#0)");
  typed.arg_types = {{DataType::bf16, {}}};
  EltwisePlan plan;
  EXPECT_EQ(MakeEltwisePlan(typed, Isa::kGeneric, &plan),
            "operand #0 of binary(mul,channel,#0) is bfloat16; only whole tensors may be other "
            "than float32");
  EXPECT_NE(error_of(last, blocked).find("does not change layout"), std::string::npos);
  for (const TensorView& view : {eight, first}) {
    EXPECT_NE(error_of(view, view).find("blocks of 16 channels or on channels last"),
              std::string::npos);
  }
  EXPECT_EQ(error_of(last, last), "");
}

// Parts of wider tensors; operands are tensors of their own.
TEST(Eltwise, PartsOfWiderTensors) {
  ThreadPool pool(2);
  for (Isa isa : TestIsas()) {
    for (int64_t pixels : {5, 700}) {
      for (const char* text : {"", "binary(mul,channel,#1);eltwise(relu)",
                               "binary(add,tensor,#3);binary(mul,sample_channel,#2)"}) {
        EltwiseDesc desc = Desc(3, 40, pixels, true, text);
        const auto part = [&](int64_t blocks) {
          return TensorView(DataType::f32, Layout::nChw16c, desc.src.dims(), blocks * pixels * 16);
        };
        desc.src = part(7);
        desc.dst = part(5);
        Check(desc, isa, pool, 0.);
      }
    }
  }
}

TEST(Eltwise, PartsAreBlockedAndKeepNoSum) {
  EltwisePlan plan;
  EltwiseDesc desc = Desc(2, 16, 4, false, "");
  desc.src = TensorView(DataType::f32, Layout::nhwc, desc.src.dims(), 128);
  EXPECT_NE(MakeEltwisePlan(desc, Isa::kGeneric, &plan).find("blocked"), std::string::npos);
  desc = Desc(2, 16, 4, true, "sum()");
  desc.dst = TensorView(DataType::f32, Layout::nChw16c, desc.src.dims(), 128);
  EXPECT_NE(MakeEltwisePlan(desc, Isa::kGeneric, &plan).find("operand"), std::string::npos);
}

}  // namespace
}  // namespace bd
