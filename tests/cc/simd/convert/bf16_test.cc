// cc/simd/convert/bf16.h on every ISA, the emulation of VDPBF16PS to the bit.
#include <gtest/gtest.h>
#include <immintrin.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "tests/cc/convert_ref.h"
#include "tests/cc/isas.h"
#include "tests/cc/simd/convert/bf16_kernel.h"

namespace bd {
namespace {

// The definition in the manual: two fused multiply-adds in a row, the second number of a pair
// first. The processor itself flushes denormal numbers for us.
__attribute__((target("fma"))) float DotRef(float acc, const Bfloat16* a, const Bfloat16* b) {
  const unsigned mode = _mm_getcsr();
  _mm_setcsr(0x1f80 | _MM_FLUSH_ZERO_ON | _MM_DENORMALS_ZERO_ON);
  volatile float result = acc;
  for (int i : {1, 0}) {
    const volatile float x = ToFloat(a[i]), y = ToFloat(b[i]);
    const __m128 sum = _mm_fmadd_ss(_mm_set_ss(x), _mm_set_ss(y), _mm_set_ss(result));
    result = _mm_cvtss_f32(sum);
  }
  _mm_setcsr(mode);
  return result;
}

bool Same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || memcmp(&a, &b, sizeof a) == 0;
}

struct Problem {
  explicit Problem(int64_t n) : acc(n), a(2 * n), b(2 * n) {}
  std::vector<float> acc;
  std::vector<Bfloat16> a, b;
};

// All bits at random; half of them with exponents whose products are about the least normal
// number, and sums that cancel.
Problem Random(int64_t n) {
  Problem p(n);
  uint32_t state = 1;
  const auto next = [&state] { return (state = state * 1664525 + 1013904223) >> 8; };
  for (int64_t i = 0; i < n; ++i) {
    const bool small = i % 2 == 0;
    for (int k = 0; k < 2; ++k) {
      const uint16_t sign = next() & 1 ? 0x8000 : 0;
      const auto about = [&](int exponent) {
        return static_cast<uint16_t>(sign | (exponent + next() % 3) << 7 | (next() & 0x7f));
      };
      p.a[2 * i + k].bits = small ? about(62) : static_cast<uint16_t>(next());
      p.b[2 * i + k].bits = small ? about(63) : static_cast<uint16_t>(next());
    }
    uint32_t bits = next() << 8 | (next() & 0xff);
    if (small) bits = (next() & 1) << 31 | (next() % 4) << 23 | (next() & 0x7fffff);
    memcpy(&p.acc[i], &bits, sizeof bits);
  }
  return p;
}

TEST(Bf16, DotIsTheInstructionToTheBit) {
  if (BestTestIsa() < Isa::kAvx2) GTEST_SKIP() << "this machine cannot emulate AVX-512";
  constexpr int64_t kPairs = 1 << 20;
  const Problem p = Random(kPairs);
  std::vector<float> acc = p.acc;
  Bf16KernelsFor(Isa::kAvx512Bf16).dot(acc.data(), p.a.data(), p.b.data(), kPairs);
  int64_t flushed = 0;
  for (int64_t i = 0; i < kPairs; ++i) {
    const float expected = DotRef(p.acc[i], &p.a[2 * i], &p.b[2 * i]);
    ASSERT_TRUE(Same(acc[i], expected))
        << acc[i] << ", not " << expected << ": " << p.acc[i] << " + " << ToFloat(p.a[2 * i + 1])
        << " * " << ToFloat(p.b[2 * i + 1]) << " + " << ToFloat(p.a[2 * i]) << " * "
        << ToFloat(p.b[2 * i]);
    flushed += expected == 0.f;
  }
  EXPECT_GT(flushed, 1000);
}

// A sum just below the least normal number that would round up to it is denormal all the same:
// 2^-126 - 2^-150 as -2^-150 + 2^-126, and the same from a product.
TEST(Bf16, WhatRoundsUpToTheLeastNormalNumberIsFlushed) {
  if (BestTestIsa() < Isa::kAvx2) GTEST_SKIP() << "this machine cannot emulate AVX-512";
  Problem p(16);
  for (int i = 0; i < 16; ++i) {
    p.acc[i] = 0x1p-126f;
    StoreFloatRef(DataType::bf16, -0x1p-75f, p.a.data(), 2 * i);
    StoreFloatRef(DataType::bf16, 0x1p-75f, p.b.data(), 2 * i);
  }
  Bf16KernelsFor(Isa::kAvx512Bf16).dot(p.acc.data(), p.a.data(), p.b.data(), 16);
  const float expected = DotRef(0x1p-126f, p.a.data(), p.b.data());
  EXPECT_EQ(expected, 0.f);
  for (float x : p.acc) EXPECT_TRUE(Same(x, expected)) << x;
}

// Where no number is denormal, the other sets give the same.
TEST(Bf16, DotOfIntegersOnEveryIsa) {
  Problem p(64);
  std::vector<float> expected(64);
  for (int i = 0; i < 64; ++i) {
    p.acc[i] = static_cast<float>(100 - i);
    for (int k = 0; k < 2; ++k) {
      const float x = static_cast<float>((i * 7 + k * 3) % 23 - 11), y = static_cast<float>(i - 30);
      StoreFloatRef(DataType::bf16, x, p.a.data(), 2 * i + k);
      StoreFloatRef(DataType::bf16, y, p.b.data(), 2 * i + k);
      expected[i] += x * y;
    }
  }
  for (Isa isa : TestIsas(Isa::kAvx512Bf16)) {
    std::vector<float> acc = p.acc, one(64);
    Bf16KernelsFor(isa).dot(acc.data(), p.a.data(), p.b.data(), 64);
    for (int i = 0; i < 64; ++i) EXPECT_EQ(acc[i], 100 - i + expected[i]) << IsaName(isa);
    Bf16KernelsFor(isa).dot_one(p.a.data(), p.b.data(), one.data(), 64);
    for (int i = 0; i < 64; ++i) {
      const float second = ToFloat(p.a[1]) * ToFloat(p.b[2 * i + 1]);
      EXPECT_EQ(one[i], ToFloat(p.a[0]) * ToFloat(p.b[2 * i]) + second) << IsaName(isa);
    }
  }
}

}  // namespace
}  // namespace bd
