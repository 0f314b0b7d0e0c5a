// Products of bfloat16 and of bytes on every ISA, in guarded memory. Those of bytes compare with
// their definition in int64 and in single operations on floats with zero tolerance, and so do sums
// of small integers in bfloat16.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "cc/core/gemm/gemm.h"
#include "cc/core/post_ops/post_ops.h"
#include "cc/core/post_ops/post_ops_bind.h"
#include "tests/cc/convert_ref.h"
#include "tests/cc/guarded_array.h"
#include "tests/cc/isas.h"

namespace bd {
namespace {

using Guard = GuardedBuffer::Guard;

struct Case {
  int64_t m, k, n;
  GemmDesc types;
  int64_t a_gap = 0, c_gap = 0;
  bool bias = false, add = false, clamp = false, transposed = false;
  int a_least = 0, a_most = 255, b_most = 127;  // of bytes
};

class GemmNarrowTest : public ::testing::TestWithParam<Isa> {
 protected:
  // Small integers, which all types hold; of bytes any from `least` to `most`.
  void Fill(DataType type, int64_t count, int least, int most, void* to) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t x = static_cast<int64_t>(rng_() >> 4) % (most - least + 1) + least;
      StoreFloatRef(type, static_cast<float>(x), to, i);
    }
  }

  static float Real(DataType type, const Quantization& q, const void* at, int64_t i) {
    const float stored = LoadAsFloatRef(type, at, i);
    if (type != DataType::u8) return stored;
    return q.scale * (stored - static_cast<float>(q.zero_point));
  }

  static void StoreReal(DataType type, const Quantization& q, float x, void* to, int64_t i) {
    if (type == DataType::u8) {
      const float steps = x * (1.f / q.scale);
      x = std::isnan(steps) ? q.zero_point : std::nearbyint(steps) + q.zero_point;
    }
    StoreFloatRef(type, x, to, i);
  }

  // What the product of row i and column j is before the epilogue.
  static float Sum(const Case& c, const GemmArgs& args, const void* b, int64_t i, int64_t j) {
    const GemmDesc& t = c.types;
    const bool bytes = t.b == DataType::s8;
    const int64_t a_at = i * args.a_row_stride;
    float row_scale = 1.f;
    if (bytes && t.a == DataType::f32) {
      float most = 0;
      for (int64_t k = 0; k < c.k; ++k) {
        most = std::max(most, std::fabs(LoadAsFloatRef(t.a, args.a, a_at + k)));
      }
      row_scale = most < 0x1p-100f ? 1.f : most / 127.f;
    }
    double sum = 0;
    int64_t exact = 0;
    for (int64_t k = 0; k < c.k; ++k) {
      float x = LoadAsFloatRef(t.a, args.a, a_at + k);
      float y = LoadAsFloatRef(t.b, b, c.transposed ? j * c.k + k : k * c.n + j);
      if (!bytes) {
        uint16_t rounded;
        StoreFloatRef(DataType::bf16, x, &rounded, 0);
        x = LoadAsFloatRef(DataType::bf16, &rounded, 0);
        StoreFloatRef(DataType::bf16, y, &rounded, 0);
        y = LoadAsFloatRef(DataType::bf16, &rounded, 0);
        sum += double{x} * y;
        continue;
      }
      if (t.a == DataType::f32) {
        x = std::fmax(-128.f, std::fmin(127.f, std::nearbyint(x * (1.f / row_scale))));
      } else {
        x -= static_cast<float>(t.a_quantization.zero_point);
      }
      exact += static_cast<int64_t>(x) * static_cast<int64_t>(y);
    }
    const float bias = args.bias == nullptr ? 0.f : args.bias[j];
    if (!bytes) return static_cast<float>(sum + bias);
    EXPECT_LE(std::llabs(exact), INT32_MAX);
    const bool dynamic = t.a == DataType::f32;
    float x = static_cast<float>(exact);
    x *= (dynamic ? 1.f : t.a_quantization.scale) * args.b_scales[j];
    if (dynamic) x *= row_scale;
    return x + bias;
  }

  void Check(const Case& c, Guard guard, int threads = 1) {
    const GemmDesc& t = c.types;
    SCOPED_TRACE(testing::Message()
                 << c.m << " x " << c.k << " x " << c.n << " of " << DataTypeName(t.a) << " and "
                 << DataTypeName(t.b) << " to " << DataTypeName(t.tensors.dst.dtype) << " + "
                 << DataTypeName(t.tensors.sum.dtype) << " zero " << t.a_quantization.zero_point
                 << " bias " << c.bias << " add " << c.add << " clamp " << c.clamp << " gaps "
                 << c.a_gap << " " << c.c_gap);
    GemmDesc desc = t;
    desc.k = c.k;
    desc.n = c.n;
    GemmPlan plan;
    ASSERT_EQ(MakeGemmPlan(desc, GetParam(), &plan), "");
    const int64_t a_stride = c.k + c.a_gap, c_stride = c.n + c.c_gap;
    const int64_t a_count = c.m == 0 ? 0 : (c.m - 1) * a_stride + c.k;
    const int64_t c_count = c.m == 0 ? 0 : (c.m - 1) * c_stride + c.n;
    const DataType dst_type = t.tensors.dst.dtype, sum_type = t.tensors.sum.dtype;
    GuardedArray a(a_count * SizeOf(t.a), guard), b(c.k * c.n * SizeOf(t.b), guard);
    GuardedArray bias(c.n * 4, guard), scales(c.n * 4, guard);
    GuardedArray add(c_count * SizeOf(sum_type), guard), dst(c_count * SizeOf(dst_type), guard);
    GuardedArray expected(c_count * SizeOf(dst_type));
    const bool bytes = t.b == DataType::s8;
    Fill(t.a, a_count, t.a == DataType::u8 ? c.a_least : -8, t.a == DataType::u8 ? c.a_most : 8,
         a.data());
    Fill(t.b, c.k * c.n, bytes ? -c.b_most : -8, bytes ? c.b_most : 8, b.data());
    Fill(DataType::f32, c.n, -9, 9, bias.data());
    Fill(sum_type, c_count, 0, 90, add.data());
    for (int64_t j = 0; j < c.n; ++j) {
      scales.As<float>()[j] = 0.0625f * static_cast<float>(1 + j % 5);
    }
    GuardedArray packed(plan.packed_bytes, guard), scratch(GemmScratchBytes(plan, c.m));
    ThreadPool pool(threads);
    PackGemm(plan, {b.data(), c.transposed ? 1 : c.n, c.transposed ? c.k : 1}, packed.As<float>(),
             &pool);
    GemmArgs args;
    args.a = a.data();
    args.a_row_stride = a_stride;
    args.packed = packed.As<float>();
    args.b_scales = bytes ? scales.As<float>() : nullptr;
    args.bias = c.bias ? bias.As<float>() : nullptr;
    args.c = dst.data();
    args.c_row_stride = c_stride;
    args.add = c.add ? add.data() : nullptr;
    args.add_row_stride = c_stride;
    args.add_scale = -2.f;
    args.clamp = c.clamp;
    args.lo = -40.f;
    args.hi = 55.f;
    args.scratch = scratch.data();
    RunGemm(plan, args, c.m, pool);
    for (int64_t i = 0; i < c.m; ++i) {
      for (int64_t j = 0; j < c.n; ++j) {
        const int64_t at = i * c_stride + j;
        float x = Sum(c, args, b.data(), i, j);
        if (c.add) x += -2.f * Real(sum_type, t.tensors.sum.quantization, add.data(), at);
        if (c.clamp) x = std::fmin(55.f, std::fmax(-40.f, x));
        StoreReal(dst_type, t.tensors.dst.quantization, x, expected.data(), at);
        ASSERT_EQ(LoadAsFloatRef(dst_type, dst.data(), at),
                  LoadAsFloatRef(dst_type, expected.data(), at))
            << "at " << i << " " << j;
      }
    }
    ASSERT_EQ(std::memcmp(dst.data(), expected.data(), expected.bytes()), 0) << "between rows";
  }

  std::mt19937 rng_{7};
};

INSTANTIATE_TEST_SUITE_P(Isas, GemmNarrowTest, ::testing::ValuesIn(TestIsas(Isa::kAvx512Bf16)),
                         [](const auto& info) { return std::string(IsaName(info.param)); });

GemmDesc Types(DataType a, DataType b, DataType dst = DataType::f32, DataType sum = DataType::f32) {
  GemmDesc d;
  d.a = a;
  d.b = b;
  d.a_quantization = a == DataType::u8   ? Quantization{0.5f, 3}
                     : a == DataType::s8 ? Quantization{0.5f, -3}
                                         : Quantization();
  d.tensors.dst.dtype = dst;
  d.tensors.sum.dtype = sum;
  if (dst == DataType::u8) d.tensors.dst.quantization = {b == DataType::s8 ? 3.7f : 1.3f, 100};
  if (sum == DataType::u8) d.tensors.sum.quantization = {0.75f, 7};
  return d;
}

const GemmDesc kInputs[] = {
    Types(DataType::bf16, DataType::bf16), Types(DataType::f32, DataType::bf16),
    Types(DataType::bf16, DataType::f32),  Types(DataType::u8, DataType::s8),
    Types(DataType::s8, DataType::s8),     Types(DataType::f32, DataType::s8)};

// Rows around the widest tiles, columns around lanes, blocks and panels, K around dwords and runs.
TEST_P(GemmNarrowTest, AllTails) {
  for (const GemmDesc& types : kInputs) {
    for (Guard guard : {Guard::kAtEnd, Guard::kAtStart}) {
      for (int64_t m : {1, 4, 5, 13, 14, 15}) {
        for (int64_t n : {1, 8, 15, 16, 17, 32, 33, 50}) {
          for (int64_t k : {1, 2, 3, 4, 7, 64, 130, 257}) {
            Check({m, k, n, types, 0, 0, n % 2 == 0, m % 2 == 0, k % 2 == 0, m == 4}, guard);
          }
        }
      }
    }
  }
}

// All types of C and of what is added to it; rows of A and of C that are apart.
TEST_P(GemmNarrowTest, TypesOfC) {
  constexpr DataType kTypes[] = {DataType::f32, DataType::bf16, DataType::u8};
  for (const GemmDesc& inputs : kInputs) {
    for (DataType dst : kTypes) {
      for (DataType sum : kTypes) {
        const GemmDesc types = Types(inputs.a, inputs.b, dst, sum);
        for (int64_t n : {5, 32, 45}) {
          Check({9, 24, n, types, 0, 0, true, true, false}, Guard::kAtEnd);
          Check({9, 24, n, types, 4, 3, true, true, true}, Guard::kAtEnd);
          Check({9, 23, n, types, 5, 3, false, true, false}, Guard::kAtStart);
        }
      }
    }
  }
}

TEST_P(GemmNarrowTest, ZeroPoints) {
  for (int zero_point : {0, 3, 128, 255}) {
    GemmDesc types = Types(DataType::u8, DataType::s8, DataType::u8);
    types.a_quantization.zero_point = types.tensors.dst.quantization.zero_point = zero_point;
    Check({15, 37, 40, types, 0, 0, true}, Guard::kAtEnd);
  }
}

// The largest sums: 255 times 127, as often as int32 allows.
TEST_P(GemmNarrowTest, LargestSums) {
  GemmDesc types = Types(DataType::u8, DataType::s8);
  for (int zero_point : {0, 255}) {
    types.a_quantization = {1.f, zero_point};
    for (int64_t k : {4608, 66311}) {
      Case c = {2, k, 3, types};
      c.a_least = c.a_most = 255 - zero_point;
      Check(c, Guard::kAtEnd);
      GemmPlan plan;
      GemmDesc desc = types;
      desc.k = k;
      desc.n = 1;
      ASSERT_EQ(MakeGemmPlan(desc, GetParam(), &plan), "");
      std::vector<uint8_t> a(k, static_cast<uint8_t>(255 - zero_point));
      std::vector<int8_t> b(k, 127);
      std::vector<float> packed(plan.packed_bytes / 4), scratch(GemmScratchBytes(plan, 1) / 4);
      ThreadPool pool(1);
      PackGemm(plan, {b.data(), 1, 1}, packed.data(), nullptr);
      GemmArgs args;
      const float scale = 1.f;
      float dst = 0;
      args.a = a.data();
      args.a_row_stride = k;
      args.packed = packed.data();
      args.b_scales = &scale;
      args.c = &dst;
      args.c_row_stride = 1;
      args.scratch = scratch.data();
      RunGemm(plan, args, 1, pool);
      const int64_t sum = k * 127 * (zero_point == 0 ? 255 : -255);
      ASSERT_LE(std::llabs(sum), INT32_MAX);
      EXPECT_EQ(dst, static_cast<float>(sum));
    }
  }
}

TEST_P(GemmNarrowTest, Splits) {
  for (const GemmDesc& types : kInputs) {
    for (int threads : {1, 2, 5}) {
      Check({70, 150, 75, types, 0, 0, true, true, true}, Guard::kAtEnd, threads);
    }
    Check({300, 300, 90, types}, Guard::kAtEnd, 3);
  }
}

TEST_P(GemmNarrowTest, NothingToDo) {
  for (const GemmDesc& types : kInputs) {
    Check({0, 5, 20, types}, Guard::kAtEnd);
    Check({3, 0, 20, types, 0, 0, true, true}, Guard::kAtEnd);
    Check({3, 5, 0, types}, Guard::kAtEnd);
  }
}

// A chain of floats between the sums and a C of another type.
TEST_P(GemmNarrowTest, Chains) {
  constexpr int64_t m = 19, k = 33, n = 45;
  for (DataType dst_type : {DataType::f32, DataType::bf16, DataType::u8}) {
    GemmDesc desc = Types(DataType::u8, DataType::s8, dst_type);
    desc.k = k;
    desc.n = n;
    std::vector<uint8_t> a(m * k);
    std::vector<int8_t> b(k * n);
    std::vector<float> channel(n), tensor(m * n), scales(n, 0.125f);
    Fill(DataType::u8, m * k, 0, 255, a.data());
    Fill(DataType::s8, k * n, -127, 127, b.data());
    Fill(DataType::f32, n, -3, 3, channel.data());
    Fill(DataType::f32, m * n, -30, 30, tensor.data());
    PostOpChain chain;
    std::string error;
    ASSERT_TRUE(PostOpChain::Parse("binary(mul,channel,#0);binary(add,tensor,#1);eltwise(relu)",
                                   &chain, &error))
        << error;
    const float* operands[] = {channel.data(), tensor.data()};
    const BoundPostOps bound(chain, n, operands, nullptr);
    GemmPlan plan;
    ASSERT_EQ(MakeGemmPlan(desc, GetParam(), &plan), "");
    std::vector<float> packed(plan.packed_bytes / 4), scratch(GemmScratchBytes(plan, m) / 4);
    GuardedArray dst(m * n * SizeOf(dst_type));
    PackGemm(plan, {b.data(), n, 1}, packed.data(), nullptr);
    GemmArgs args;
    args.a = a.data();
    args.a_row_stride = k;
    args.packed = packed.data();
    args.b_scales = scales.data();
    args.c = dst.data();
    args.c_row_stride = n;
    args.program = bound.program();
    args.scratch = scratch.data();
    ThreadPool pool(2);
    RunGemm(plan, args, m, pool);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const float x = Sum({m, k, n, desc}, args, b.data(), i, j);
        uint32_t expected;
        StoreReal(dst_type, desc.tensors.dst.quantization,
                  std::fmax(0.f, x * channel[j] + tensor[i * n + j]), &expected, 0);
        ASSERT_EQ(LoadAsFloatRef(dst_type, dst.data(), i * n + j),
                  LoadAsFloatRef(dst_type, &expected, 0))
            << "at " << i << " " << j;
      }
    }
  }
}

// Of 512 products below 1 the sum rounds 512 times, each time by at most 2^-24 of a partial sum
// below 64.
TEST_P(GemmNarrowTest, AccuracyOfBfloat16) {
  constexpr int64_t m = 14, k = 512, n = 100;
  std::uniform_real_distribution<float> uniform(-1.f, 1.f);
  std::vector<uint16_t> a(m * k), b(k * n);
  for (size_t i = 0; i < a.size(); ++i) StoreFloatRef(DataType::bf16, uniform(rng_), a.data(), i);
  for (size_t i = 0; i < b.size(); ++i) StoreFloatRef(DataType::bf16, uniform(rng_), b.data(), i);
  GemmDesc desc = Types(DataType::bf16, DataType::bf16);
  desc.k = k;
  desc.n = n;
  GemmPlan plan;
  ASSERT_EQ(MakeGemmPlan(desc, GetParam(), &plan), "");
  std::vector<float> packed(plan.packed_bytes / 4), scratch(GemmScratchBytes(plan, m) / 4);
  std::vector<float> dst(m * n);
  PackGemm(plan, {b.data(), n, 1}, packed.data(), nullptr);
  GemmArgs args;
  args.a = a.data();
  args.a_row_stride = k;
  args.packed = packed.data();
  args.c = dst.data();
  args.c_row_stride = n;
  args.scratch = scratch.data();
  ThreadPool pool(1);
  RunGemm(plan, args, m, pool);
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

TEST(GemmNarrowPlanTest, ErrorsNameTheTypes) {
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
