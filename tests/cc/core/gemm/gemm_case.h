// Products of all types beside their definition, in guarded memory. Those of bytes compare with
// int64 and single operations on floats with zero tolerance, and so do sums of small integers but
// for those in pairs.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <initializer_list>
#include <random>
#include <vector>

#include "cc/core/post_ops/post_ops.h"
#include "tests/cc/convert_ref.h"
#include "tests/cc/core/gemm/gemm_ref.h"
#include "tests/cc/guarded_array.h"
#include "tests/cc/isas.h"
#include "tests/cc/post_ops_ref.h"

namespace bd {

using Guard = GuardedBuffer::Guard;

struct Case {
  int64_t m, k, n;
  GemmDesc types;
  bool bias = false, add = false, clamp = false, transposed = false;
  int a_least = 0, a_most = 255, b_most = 127;  // of bytes
  bool chain = false;                           // of floats, between the sums and C
};

class GemmCheck {
 protected:
  // Weight k of column j of numbers of 4 bits.
  static double Number(const Case& c, const GemmArgs& args, const void* b, int64_t k, int64_t j) {
    const int64_t rows = (c.k + 1) / 2, group = c.types.group, groups = (c.k + group - 1) / group;
    const int64_t at = c.transposed ? j * rows + k / 2 : k / 2 * c.n + j;
    const int number = static_cast<const uint8_t*>(b)[at] >> (k % 2 * 4) & 15;
    const float* step = args.b_scales + k / group * c.n + j;
    return double{*step} * number + double{step[groups * c.n]};
  }

  static bool OfBytes(const GemmDesc& t) { return t.b == DataType::s8 && !t.widens; }
  // x as the product reads it: rounded where one side is of bfloat16.
  static float Rounded(const GemmDesc& t, float x) {
    const bool floats = t.a == DataType::f32 && t.b == DataType::f32;
    if (OfBytes(t) || t.widens || floats || t.b == DataType::u8) return x;
    uint16_t rounded;
    StoreFloatRef(DataType::bf16, x, &rounded, 0);
    return LoadAsFloatRef(DataType::bf16, &rounded, 0);
  }

  // What the product multiplies by, row by row.
  static std::vector<double> Numbers(const Case& c, const GemmArgs& args, const void* b) {
    const GemmDesc& t = c.types;
    std::vector<double> numbers(c.k * c.n);
    for (int64_t at = 0; at < c.k * c.n; ++at) {
      const int64_t k = at / c.n, j = at % c.n;
      const bool int4 = t.b == DataType::u8, scaled = t.widens && !int4 && args.b_scales != nullptr;
      numbers[at] = int4 ? Number(c, args, b, k, j)
                         : Rounded(t, LoadAsFloatRef(t.b, b, c.transposed ? j * c.k + k : at));
      if (scaled) numbers[at] *= args.b_scales[j];
    }
    return numbers;
  }

  // What row i of the product is before the epilogue.
  static std::vector<float> Row(const Case& c, const GemmArgs& args,
                                const std::vector<double>& numbers, int64_t i) {
    const GemmDesc& t = c.types;
    const bool bytes = OfBytes(t), dynamic = bytes && t.a == DataType::f32;
    const auto element = [&](int64_t k) { return LoadAsFloatRef(t.a, args.a, i * c.k + k); };
    float row_scale = 1.f, inverse = 1.f;
    if (dynamic) {
      float most = 0;
      for (int64_t k = 0; k < c.k; ++k) most = std::max(most, std::fabs(element(k)));
      inverse = 127.f / (most + 1e-7f);
      row_scale = 1.f / inverse;
    }
    std::vector<double> sums(c.n);  // exact, of bytes
    for (int64_t k = 0; k < c.k; ++k) {
      float x = Rounded(t, element(k));
      if (dynamic) {
        x = std::fmax(-127.f, std::fmin(127.f, std::nearbyint(x * inverse)));
      } else if (bytes) {
        x -= static_cast<float>(t.a_quantization.zero_point);
      }
      for (int64_t j = 0; j < c.n; ++j) sums[j] += double{x} * numbers[k * c.n + j];
    }
    std::vector<float> row(c.n);
    for (int64_t j = 0; j < c.n; ++j) {
      const float bias = args.bias == nullptr ? 0.f : args.bias[j];
      row[j] = static_cast<float>(bytes ? sums[j] : sums[j] + bias);
      if (!bytes) continue;
      EXPECT_LE(std::fabs(sums[j]), INT32_MAX);
      row[j] *= (dynamic ? 1.f : t.a_quantization.scale) * args.b_scales[j];
      if (dynamic) row[j] *= row_scale;
      row[j] += bias;
    }
    return row;
  }

  void Check(Isa isa, const Case& c, Guard guard, int threads) {
    const GemmDesc& t = c.types;
    SCOPED_TRACE(testing::Message()
                 << c.m << " x " << c.k << " x " << c.n << " of " << DataTypeName(t.a) << " and "
                 << DataTypeName(t.b) << " to " << DataTypeName(t.tensors.dst.dtype) << " + "
                 << DataTypeName(t.tensors.sum.dtype) << " zero " << t.a_quantization.zero_point
                 << " bias " << c.bias << " add " << c.add << " clamp " << c.clamp);
    GemmDesc desc = t;
    desc.k = c.k;
    desc.n = c.n;
    desc.threads = threads;
    GemmPlan plan;
    ASSERT_EQ(MakeGemmPlan(desc, isa, &plan), "");
    const double off = plan.pairs ? 1e-6 * (c.chain ? 900 : 100) * (1 + std::sqrt(c.k)) : 0;
    const int64_t a_count = c.m * c.k, c_count = c.m * c.n;
    const DataType dst_type = t.tensors.dst.dtype, sum_type = t.tensors.sum.dtype;
    const bool bytes = t.b == DataType::s8, int4 = t.b == DataType::u8;
    const int64_t b_rows = int4 ? (c.k + 1) / 2 : c.k;
    const int64_t num_scales = int4 ? 2 * ((c.k + t.group - 1) / t.group) * c.n : c.n;
    GuardedArray a(a_count * SizeOf(t.a), guard), b(b_rows * c.n * SizeOf(t.b), guard);
    GuardedArray bias(c.n * 4, guard), scales(num_scales * 4, guard);
    GuardedArray add(c_count * SizeOf(sum_type), guard), dst(c_count * SizeOf(dst_type), guard);
    GuardedArray expected(c_count * SizeOf(dst_type));
    FillDrawn(rng_, t.a, a_count, t.a == DataType::u8 ? c.a_least : -8,
              t.a == DataType::u8 ? c.a_most : 8, a.data());
    FillDrawn(rng_, t.b, b_rows * c.n,
              int4    ? 0
              : bytes ? -c.b_most
                      : -8,
              int4    ? 255
              : bytes ? c.b_most
                      : 8,
              b.data());
    FillDrawn(rng_, DataType::f32, c.n, -9, 9, bias.data());
    FillDrawn(rng_, sum_type, c_count, 0, 90, add.data());
    for (int64_t j = 0; j < num_scales; ++j) {
      scales.As<float>()[j] = 0.0625f * static_cast<float>(1 + j % 5);
    }
    GuardedArray tensor(c_count * 4);
    FillDrawn(rng_, DataType::f32, c_count, -30, 30, tensor.data());
    const float* operands[] = {bias.As<float>(), tensor.As<float>()};
    const PostOpChain chain = Chain("binary(mul,channel,#0);binary(add,tensor,#1);eltwise(relu)");
    const BoundPostOps bound(chain, isa, c.n, operands, nullptr);
    ThreadPool pool(threads);
    GemmArgs args;
    if (c.chain) args.program = bound.program();
    args.a = a.data();
    args.b_scales = bytes || int4 ? scales.As<float>() : nullptr;
    args.bias = c.bias ? bias.As<float>() : nullptr;
    args.c = dst.data();
    args.add = c.add ? add.data() : nullptr;
    args.add_scale = -2.f;
    args.clamp = c.clamp;
    args.lo = -40.f;
    args.hi = 55.f;
    PackAndRun(plan, {b.data(), c.transposed ? 1 : c.n, c.transposed ? b_rows : 1}, args, c.m, pool,
               guard);
    const std::vector<double> numbers = Numbers(c, args, b.data());
    for (int64_t i = 0; i < c.m; ++i) {
      const std::vector<float> row = Row(c, args, numbers, i);
      for (int64_t j = 0; j < c.n; ++j) {
        const int64_t at = i * c.n + j;
        float x = row[j];
        if (c.add) x += -2.f * LoadRealRef(sum_type, t.tensors.sum.quantization, add.data(), at);
        if (c.clamp) x = std::fmin(55.f, std::fmax(-40.f, x));
        if (c.chain) x = std::fmax(0.f, x * bias.As<float>()[j] + tensor.As<float>()[at]);
        StoreRealRef(dst_type, t.tensors.dst.quantization, x, expected.data(), at);
        ASSERT_NEAR(LoadAsFloatRef(dst_type, dst.data(), at),
                    LoadAsFloatRef(dst_type, expected.data(), at), off)
            << "at " << i << " " << j;
        if (off > 0) std::memcpy(expected.As<float>() + at, dst.As<float>() + at, sizeof(float));
      }
    }
    ASSERT_EQ(std::memcmp(dst.data(), expected.data(), expected.bytes()), 0) << "between rows";
  }

  // Rows around the widest tiles and what AMX multiplies together, columns around lanes, blocks and
  // panels, K around dwords and runs; epilogues and threads of all kinds.
  void CheckDrawn(Isa isa, const GemmDesc& types, int count) {
    const auto pick = [&](std::initializer_list<int64_t> list) {
      return list.begin()[rng_() % list.size()];
    };
    for (int i = 0; i < count; ++i) {
      Case c = {pick({1, 1, 2, 3, 4, 5, 6, 7, 9, 13, 14, 15, 16, 17, 20, 21, 29, 32, 33, 65}),
                pick({1, 2, 3, 4, 5, 7, 24, 31, 32, 33, 37, 63, 64, 65, 130, 200, 257}),
                pick({1, 3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40, 45, 48, 50, 64, 65, 75}),
                types};
      c.bias = rng_() % 2;
      c.transposed = rng_() % 2;
      c.chain = rng_() % 6 == 0;
      c.add = !c.chain && rng_() % 2;
      c.clamp = !c.chain && rng_() % 2;
      Check(isa, c, rng_() % 2 ? Guard::kAtEnd : Guard::kAtStart,
            static_cast<int>(pick({1, 2, 5})));
    }
    Check(isa, {0, 5, 20, types}, Guard::kAtEnd, 1);
    for (int64_t m : {3, 30}) Check(isa, {m, 0, 20, types, true, true}, Guard::kAtEnd, 1);
    Check(isa, {3, 5, 0, types}, Guard::kAtEnd, 1);
  }

  std::mt19937 rng_{7};
};

class GemmLowPrecisionTest : public ::testing::TestWithParam<Isa>, protected GemmCheck {
 protected:
  void Check(const Case& c, Guard guard, int threads = 1) {
    GemmCheck::Check(GetParam(), c, guard, threads);
  }
};

inline GemmDesc Types(DataType a, DataType b, DataType dst = DataType::f32,
                      DataType sum = DataType::f32) {
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

}  // namespace bd
