// Products of bfloat16 and of bytes on every ISA.
#include "tests/cc/core/gemm/gemm_case.h"

namespace bd {
namespace {

INSTANTIATE_TEST_SUITE_P(Isas, GemmLowPrecisionTest, ::testing::ValuesIn(TestIsasOfBytes()),
                         IsaParam);

const GemmDesc kInputs[] = {
    Types(DataType::bf16, DataType::bf16), Types(DataType::f32, DataType::bf16),
    Types(DataType::bf16, DataType::f32),  Types(DataType::u8, DataType::s8),
    Types(DataType::s8, DataType::s8),     Types(DataType::f32, DataType::s8)};

// With all types of C and of what is added to it.
TEST_P(GemmLowPrecisionTest, DrawnProducts) {
  constexpr DataType kTypes[] = {DataType::f32, DataType::bf16, DataType::u8};
  for (const GemmDesc& inputs : kInputs) {
    for (DataType dst : kTypes) {
      for (DataType sum : kTypes) {
        CheckDrawn(GetParam(), Types(inputs.a, inputs.b, dst, sum), 25);
      }
    }
    Check({300, 40, 50, inputs}, Guard::kAtEnd, 3);
  }
}

// A row that becomes bytes is of its own kind: enormous, infinite or not a number; its neighbours
// do not notice.
TEST_P(GemmLowPrecisionTest, RowsOfFloatsOfAnyKind) {
  constexpr int64_t m = 5, k = 90, n = 18;
  const GemmDesc desc = [] {
    GemmDesc d = Types(DataType::f32, DataType::s8);
    d.k = k;
    d.n = n;
    return d;
  }();
  std::vector<float> a(m * k, 1.f), scales(n, 0.01f), c(m * n);
  const std::vector<int8_t> b(k * n, 127);
  a[0 * k + 3] = NAN;
  a[1 * k + 70] = INFINITY;
  a[2 * k + 89] = -INFINITY;
  a[3 * k + 7] = 1e38f;
  GemmArgs args = DenseArgs(desc, a.data(), c.data());
  args.b_scales = scales.data();
  PlanAndRun(desc, GetParam(), {b.data(), n, 1}, args, m, 1);
  for (int64_t j = 0; j < n; ++j) {
    EXPECT_TRUE(std::isnan(c[0 * n + j])) << c[0 * n + j];
    EXPECT_EQ(c[1 * n + j], INFINITY);
    EXPECT_EQ(c[2 * n + j], -INFINITY);
    EXPECT_NEAR(c[3 * n + j] / (1e38f * 1.27f), 1, 1e-5);
    EXPECT_NEAR(c[4 * n + j], k * 1.27f, 1e-3);
  }
}

TEST_P(GemmLowPrecisionTest, ZeroPoints) {
  for (int zero_point : {0, 3, 128, 255}) {
    GemmDesc types = Types(DataType::u8, DataType::s8, DataType::u8);
    types.a_quantization.zero_point = types.tensors.dst.quantization.zero_point = zero_point;
    Check({15, 37, 40, types, true}, Guard::kAtEnd);
  }
}

// The largest sums: 255 times 127, as often as int32 allows.
TEST_P(GemmLowPrecisionTest, LargestSums) {
  GemmDesc types = Types(DataType::u8, DataType::s8);
  for (int zero_point : {0, 255}) {
    types.a_quantization = {1.f, zero_point};
    for (int64_t k : {4608, 66311}) {
      Case c = {2, k, 3, types};
      c.a_least = c.a_most = 255 - zero_point;
      Check(c, Guard::kAtEnd);
      GemmDesc desc = types;
      desc.k = k;
      desc.n = 1;
      std::vector<uint8_t> a(k, static_cast<uint8_t>(255 - zero_point));
      std::vector<int8_t> b(k, 127);
      const float scale = 1.f;
      float dst = 0;
      GemmArgs args = DenseArgs(desc, a.data(), &dst);
      args.b_scales = &scale;
      PlanAndRun(desc, GetParam(), {b.data(), 1, 1}, args, 1);
      const int64_t sum = k * 127 * (zero_point == 0 ? 255 : -255);
      ASSERT_LE(std::llabs(sum), INT32_MAX);
      EXPECT_EQ(dst, static_cast<float>(sum));
    }
  }
}

// Of 512 products below 1 the sum rounds 512 times, each time by at most 2^-24 of a partial sum
// below 64.
TEST_P(GemmLowPrecisionTest, AccuracyOfBfloat16) {
  constexpr int64_t m = 14, k = 512, n = 100;
  std::uniform_real_distribution<float> uniform(-1.f, 1.f);
  std::vector<uint16_t> a(m * k), b(k * n);
  for (size_t i = 0; i < a.size(); ++i) StoreFloatRef(DataType::bf16, uniform(rng_), a.data(), i);
  for (size_t i = 0; i < b.size(); ++i) StoreFloatRef(DataType::bf16, uniform(rng_), b.data(), i);
  GemmDesc desc = Types(DataType::bf16, DataType::bf16);
  desc.k = k;
  desc.n = n;
  std::vector<float> dst(m * n);
  PlanAndRun(desc, GetParam(), {b.data(), n, 1}, DenseArgs(desc, a.data(), dst.data()), m);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t x = 0; x < k; ++x) {
        sum += double{LoadAsFloatRef(DataType::bf16, a.data(), i * k + x)} *
               LoadAsFloatRef(DataType::bf16, b.data(), x * n + j);
      }
      ASSERT_NEAR(dst[i * n + j], sum, 512 * 64 * 0x1p-24);
    }
  }
}

TEST(GemmLowPrecisionPlanTest, ErrorsNameTheTypes) {
  const auto error_of = [](GemmDesc d, int64_t k) {
    GemmPlan plan;
    d.k = k;
    d.n = 1;
    return MakeGemmPlan(d, Isa::kGeneric, &plan);
  };
  EXPECT_EQ(error_of(Types(DataType::u8, DataType::bf16), 3),
            "there is no product of uint8 and bfloat16; convert one before");
  EXPECT_EQ(error_of(Types(DataType::u8, DataType::s8, DataType::s8), 3),
            "a product of uint8 and int8 neither stores nor adds int8");
  EXPECT_EQ(error_of(Types(DataType::f32, DataType::f32, DataType::bf16), 3),
            "a product of float32 and float32 neither stores nor adds bfloat16");
  EXPECT_EQ(error_of(Types(DataType::u8, DataType::s8), 66312),
            "sums of 66312 products of bytes may be no int32; at most 66311 are");
}

}  // namespace
}  // namespace bd
