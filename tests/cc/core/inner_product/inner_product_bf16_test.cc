#include "cc/core/inner_product/inner_product_bf16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/cc/convert_ref.h"
#include "tests/cc/guarded_buffer.h"
#include "tests/cc/isas.h"

namespace bd {
namespace {

using Guard = GuardedBuffer::Guard;

// Numbers of 16 bits that end, or begin, at a guard page.
class Bf16Buffer {
 public:
  Bf16Buffer(int64_t count, Guard guard) : count_(count), floats_((count + 1) / 2, guard) {
    data_ = reinterpret_cast<Bfloat16*>(floats_.data());
    if (guard == Guard::kAtEnd) data_ += count % 2;
  }
  Bfloat16* data() { return data_; }
  template <typename Value>
  void Fill(Value value) {
    for (int64_t i = 0; i < count_; ++i) StoreFloatRef(DataType::bf16, value(i), data_, i);
  }

 private:
  int64_t count_;
  GuardedBuffer floats_;
  Bfloat16* data_;
};

InnerProductBf16Desc Desc(int64_t rows, int64_t inputs, int64_t outputs) {
  InnerProductBf16Desc desc;
  desc.src = TensorView(DataType::bf16, Layout::nc, {rows, inputs});
  desc.dst = TensorView(DataType::f32, Layout::nc, {rows, outputs});
  return desc;
}

class InnerProductBf16 : public testing::TestWithParam<Isa> {
 protected:
  template <typename Value>
  void Check(const InnerProductBf16Desc& desc, Value value, double tolerance, Guard guard) {
    SCOPED_TRACE(desc.src.ToString() + " to " + desc.dst.ToString());
    InnerProductBf16Plan plan;
    ASSERT_EQ(MakeInnerProductBf16Plan(desc, GetParam(), &plan), "");
    const int64_t weights_count = desc.src.c() * desc.dst.c();
    Bf16Buffer src(desc.src.elements(), guard), weights(weights_count, guard);
    Bf16Buffer packed(plan.packed_bytes() / 2, guard);
    src.Fill([&](int64_t i) { return value(i); });
    weights.Fill([&](int64_t i) { return value(i + 12345); });
    GuardedBuffer dst(desc.dst.elements(), guard), expected(desc.dst.elements());
    dst.Fill(77.f);
    expected.Fill(77.f);
    InnerProductBf16Ref(desc, src.data(), weights.data(), expected.data());
    PackInnerProductBf16(plan, weights.data(), packed.data());
    RunInnerProductBf16(plan, src.data(), packed.data(), dst.data(), pool_);
    for (size_t i = 0; i < dst.size(); ++i) {
      ASSERT_LE(std::fabs(dst[i] - expected[i]), tolerance) << "at " << i;
    }
  }

  void CheckIntegers(const InnerProductBf16Desc& desc) {
    const auto value = [](int64_t i) { return static_cast<float>(i * 7919 % 31 - 15); };
    Check(desc, value, 0., Guard::kAtEnd);
    Check(desc, value, 0., Guard::kAtStart);
  }

  ThreadPool pool_{2};
};

INSTANTIATE_TEST_SUITE_P(Isas, InnerProductBf16, testing::ValuesIn(TestIsas(Isa::kAvx512Bf16)),
                         [](const auto& info) { return std::string(IsaName(info.param)); });

// Tails of rows, of pairs and of panels; sums of integers are exact.
TEST_P(InnerProductBf16, Tails) {
  for (int64_t rows : {0, 1, 2, 3, 4, 12, 13, 25}) {
    for (int64_t inputs : {1, 2, 3, 16, 33}) {
      for (int64_t outputs : {1, 7, 8, 9, 16, 17, 40}) CheckIntegers(Desc(rows, inputs, outputs));
    }
  }
  CheckIntegers(Desc(3, 0, 5));
  CheckIntegers(Desc(3, 5, 0));
}

TEST_P(InnerProductBf16, ManyTasks) {
  const InnerProductBf16Desc desc = Desc(5, 1000, 1001);
  InnerProductBf16Plan plan;
  ASSERT_EQ(MakeInnerProductBf16Plan(desc, GetParam(), &plan), "");
  ASSERT_GT(plan.tasks, 3);
  CheckIntegers(desc);
}

TEST_P(InnerProductBf16, RowsThatAreApart) {
  InnerProductBf16Desc desc = Desc(5, 9, 21);
  desc.src = TensorView(DataType::bf16, Layout::nc, desc.src.dims(), 13);
  desc.dst = TensorView(DataType::f32, Layout::nc, desc.dst.dims(), 30);
  CheckIntegers(desc);
}

// Of 512 products below 1 the sum rounds 512 times, each time by at most 2^-24 of a partial sum
// below 64.
TEST_P(InnerProductBf16, Accuracy) {
  std::mt19937 rng(1);
  std::uniform_real_distribution<float> uniform(-1.f, 1.f);
  Check(
      Desc(14, 512, 100), [&](int64_t) { return uniform(rng); }, 512 * 64 * 0x1p-24, Guard::kAtEnd);
}

TEST(InnerProductBf16Plan, NamesWhatIsWrong) {
  const auto error_of = [](const TensorView& src, const TensorView& dst) {
    InnerProductBf16Plan plan;
    return MakeInnerProductBf16Plan({src, dst}, Isa::kGeneric, &plan);
  };
  const TensorView rows(DataType::bf16, Layout::nc, {2, 3}),
      floats(DataType::f32, Layout::nc, {2, 4});
  EXPECT_EQ(error_of(rows, floats), "");
  EXPECT_EQ(error_of(floats, floats),
            "this inner product is of bfloat16 to float32, got float32 to float32");
  EXPECT_NE(error_of(rows, TensorView(DataType::f32, Layout::nc, {3, 4})).find("is of rows"),
            std::string::npos);
  EXPECT_NE(error_of(TensorView(DataType::bf16, Layout::nC16c, {2, 3}), floats).find("is of rows"),
            std::string::npos);
}

}  // namespace
}  // namespace bd
