// cc/simd/vec.h says the same on every ISA.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

#include "tests/cc/guarded_buffer.h"
#include "tests/cc/isas.h"
#include "tests/cc/simd/vec_kernel.h"
#include "tests/cc/ulp.h"

namespace bd {
namespace {

// Compares bit for bit; NaNs are all the same.
void ExpectSame(float got, float expected, Isa isa, float a, float b) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(got)) << IsaName(isa) << ": " << a << ", " << b;
  } else {
    EXPECT_EQ(memcmp(&got, &expected, sizeof got), 0)
        << IsaName(isa) << ": " << a << ", " << b << " gives " << got << ", not " << expected;
  }
}

const std::vector<float> kInteresting = {0.f,        -0.f,       1.f,      -1.f,      1.5f,
                                         3.0000002f, -7.f,       1e20f,    -1e-20f,   1e-40f,
                                         6e4f,       16777215.f, INFINITY, -INFINITY, NAN};

uint32_t ToBits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

// Of all pairs of interesting values.
TEST(Vec, WordsOfLanes) {
  const struct {
    VecWord word;
    float (*expected)(float a, float b, float c);
  } words[] = {
#define BD_WORD(word, vectors, floats)                                                         \
  {VecWord::word,                                                                              \
   []([[maybe_unused]] float a, [[maybe_unused]] float b, [[maybe_unused]] float c) -> float { \
     return floats;                                                                            \
   }},
      BD_VEC_WORDS(BD_WORD)
#undef BD_WORD
  };
  std::vector<float> a, b;
  for (float x : kInteresting) {
    for (float y : kInteresting) {
      a.push_back(x);
      b.push_back(y);
    }
  }
  a.resize((a.size() + 15) / 16 * 16, 1.f);
  b.resize(a.size(), 2.f);
  const std::vector<float> c(a.size(), 0.25f);
  std::vector<float> dst(a.size());
  for (const auto& [word, expected] : words) {
    for (Isa isa : TestIsas()) {
      VecKernelsFor(isa).apply(word, a.data(), b.data(), c.data(), dst.data(), a.size());
      SCOPED_TRACE(static_cast<int>(word));
      for (size_t i = 0; i < a.size(); ++i) {
        ExpectSame(dst[i], expected(a[i], b[i], c[i]), isa, a[i], b[i]);
      }
    }
  }
}

TEST(Vec, HasAnyLooksIntoEveryLane) {
  for (Isa isa : TestIsas()) {
    const VecKernels& kernels = VecKernelsFor(isa);
    for (int special = 0; special < 16; ++special) {
      std::vector<float> a(16, 1.f), dst(16);
      a[special] = -0.f;
      kernels.apply(VecWord::kHasSign, a.data(), a.data(), a.data(), dst.data(), 16);
      for (int i = 0; i < 16; ++i) {
        EXPECT_EQ(dst[i] == 1.f, i / kernels.lanes == special / kernels.lanes) << IsaName(isa);
      }
    }
  }
}

TEST(Vec, ProductErrorIsExact) {
  std::vector<float> a(1024), b(1024), dst(1024);
  for (int i = 0; i < 1024; ++i) {
    a[i] = std::ldexp(1.f + i * 977 % 8388608 / 8388608.f, i % 41 - 20);
    b[i] = -std::ldexp(1.f + i * 7919 % 8388608 / 8388608.f, i % 37 - 18);
  }
  for (Isa isa : TestIsas()) {
    VecKernelsFor(isa).apply(VecWord::kProductError, a.data(), b.data(), b.data(), dst.data(),
                             1024);
    for (int i = 0; i < 1024; ++i) {
      const double exact = static_cast<double>(a[i]) * b[i];
      ExpectSame(dst[i], static_cast<float>(exact - static_cast<float>(exact)), isa, a[i], b[i]);
    }
  }
}

// Sums near halfway between two floats, of all sizes, to which a rounding in double first adds
// another one.
TEST(Vec, FmaOnceIsRoundedOnce) {
  constexpr int kCount = 1 << 16;
  std::vector<float> a(kCount), b(kCount), c(kCount), dst(kCount);
  uint32_t seed = 1;
  const auto next = [&] { return seed = seed * 1664525u + 1013904223u; };
  const auto number = [&](int exponent) {
    const float x = 1.f + static_cast<float>(next() >> 9) / 8388608.f;
    return std::ldexp(next() >> 31 != 0 ? x : -x, exponent);
  };
  for (int i = 0; i < kCount; ++i) {
    a[i] = number(0);
    b[i] = i % 3 == 0 ? std::ldexp(1.f + (next() >> 31), -(i % 60)) : number(-(i % 60));
    c[i] = number(0);
    if (i % 5 == 0) c[i] = -a[i] * b[i];
  }
  const float inf = std::numeric_limits<float>::infinity();
  a[0] = inf, a[1] = -inf, c[2] = inf, a[3] = std::nanf(""), c[4] = std::nanf("");
  a[5] = 1e30f, b[5] = 1e30f, a[6] = b[6] = c[6] = 0.f, a[7] = b[7] = 1e-30f, c[7] = 1e-44f;
  for (Isa isa : TestIsas()) {
    VecKernelsFor(isa).apply(VecWord::kFmaOnce, a.data(), b.data(), c.data(), dst.data(), kCount);
    for (int i = 0; i < kCount; ++i)
      ExpectSame(dst[i], std::fma(a[i], b[i], c[i]), isa, a[i], b[i]);
  }
}

TEST(Vec, FmaAndNegFma) {
  const std::vector<float> a(16, 3.f), b(16, 5.f), c(16, 100.f);
  std::vector<float> dst(16);
  for (Isa isa : TestIsas()) {
    for (VecWord fma : {VecWord::kFma, VecWord::kFmaInto}) {
      VecKernelsFor(isa).apply(fma, a.data(), b.data(), c.data(), dst.data(), 16);
      for (float x : dst) EXPECT_EQ(x, 115.f);
    }
    VecKernelsFor(isa).apply(VecWord::kNegFma, a.data(), b.data(), c.data(), dst.data(), 16);
    for (float x : dst) EXPECT_EQ(x, 85.f);
  }
}

TEST(Vec, Set1InOrder) {
  std::vector<float> a(16), dst(16);
  for (int i = 0; i < 16; ++i) a[i] = i;
  for (Isa isa : TestIsas()) {
    const VecKernels& kernels = VecKernelsFor(isa);
    kernels.apply(VecWord::kSet1InOrder, a.data(), a.data(), a.data(), dst.data(), 16);
    for (int i = 0; i < 16; ++i) EXPECT_EQ(dst[i], i / kernels.lanes * kernels.lanes);
  }
}

TEST(Vec, ScaleByPow2RoundsOnce) {
  std::vector<float> a, b;
  for (int n = -250; n <= 250; ++n) {
    for (float x : {0.50000006f, 1.f, -1.1920929f, 1.9999999f}) {
      a.push_back(x);
      b.push_back(static_cast<float>(n));
    }
  }
  a.resize((a.size() + 15) / 16 * 16, 1.f);
  b.resize(a.size(), 1.f);
  for (Isa isa : TestIsas()) {
    std::vector<float> dst(a.size());
    VecKernelsFor(isa).apply(VecWord::kScaleByPow2, a.data(), b.data(), a.data(), dst.data(),
                             a.size());
    for (size_t i = 0; i < a.size(); ++i) {
      ExpectSame(dst[i], std::ldexp(a[i], static_cast<int>(b[i])), isa, a[i], b[i]);
    }
  }
}

TEST(Vec, PartialVectorsTouchNothingElse) {
  for (Isa isa : TestIsas()) {
    const VecKernels& kernels = VecKernelsFor(isa);
    for (int n = 0; n <= kernels.lanes; ++n) {
      for (auto guard : {GuardedBuffer::kAtEnd, GuardedBuffer::kAtStart}) {
        GuardedBuffer src(n, guard), dst(n, guard);
        float sum = 0.f;
        for (int i = 0; i < n; ++i) sum += src[i] = static_cast<float>(i + 1);
        EXPECT_EQ(kernels.copy_first(src.data(), dst.data(), n), sum) << IsaName(isa);
        for (int i = 0; i < n; ++i) EXPECT_EQ(dst[i], src[i]);
      }
    }
  }
}

TEST(Vec, LookupTakesTheLowBitsOfTheIndex) {
  alignas(64) int32_t table[32];
  for (int i = 0; i < 32; ++i) table[i] = 1000 + i * i;
  for (Isa isa : TestIsas()) {
    const VecKernels& kernels = VecKernelsFor(isa);
    if (kernels.look_up == nullptr) continue;
    for (int32_t first : {0, 7, 30, -3, 1 << 20, INT32_MIN}) {
      int32_t index[16], dst[16];
      for (int i = 0; i < 16; ++i) index[i] = first + 5 * i;
      kernels.look_up(table, index, dst);
      for (int i = 0; i < kernels.lanes; ++i) {
        EXPECT_EQ(dst[i], table[index[i] & (kernels.lookup - 1)]) << IsaName(isa);
      }
    }
  }
}

// Words that only 512-bit vectors have, by their definition.
TEST(Vec, WideWords) {
  if (BestTestIsa() < Isa::kAvx512) GTEST_SKIP() << "this machine cannot emulate AVX-512";
  const VecKernels& kernels = VecKernelsFor(Isa::kAvx512);
  ASSERT_EQ(kernels.lanes, 16);
  alignas(64) float a[16], b[16], c[16], dst[16];
  for (float first : {3.f, -5.f}) {
    for (int i = 0; i < 16; ++i) a[i] = first + i, b[i] = 10.f - 3 * i, c[i] = i * i;
    const auto half = [&](int i) {
      return i < 8 ? c[i] - (a[0] * b[i] + c[i]) * b[i] + a[0] - a[1] : 0.f;
    };
    const struct {
      WideWord word;
      std::function<float(int)> expected;
    } cases[] = {
        {WideWord::kFmaAt, [&](int i) { return a[0] * b[i] + c[i]; }},
        {WideWord::kAddAt, [&](int i) { return b[i] + a[0]; }},
        {WideWord::kSubAt, [&](int i) { return b[i] - a[0]; }},
        {WideWord::kHalf, half},
        {WideWord::kOddsToEvens, [&](int i) { return a[i | 1]; }},
        {WideWord::kOnce, [&](int i) { return a[i]; }},
        {WideWord::kStream, [&](int i) { return a[i]; }},
    };
    for (const auto& k : cases) {
      kernels.wide(k.word, a, b, c, dst);
      for (int i = 0; i < 16; ++i) EXPECT_EQ(dst[i], k.expected(i)) << static_cast<int>(k.word);
    }
  }
}

TEST(Vec, ReduceMaxFindsTheLargestInAnyLane) {
  for (Isa isa : TestIsas()) {
    const VecKernels& kernels = VecKernelsFor(isa);
    for (int largest = 0; largest < kernels.lanes; ++largest) {
      float lanes[16];
      for (int i = 0; i < 16; ++i) lanes[i] = i % 3 == 0 ? -INFINITY : -1.f - static_cast<float>(i);
      lanes[largest] = -0.5f;
      EXPECT_EQ(kernels.reduce_max(lanes), -0.5f) << IsaName(isa) << " lane " << largest;
    }
  }
}

TEST(Vec, ReduceAddEachAddsRows) {
  if (BestTestIsa() < Isa::kAvx512) GTEST_SKIP() << "this machine cannot emulate AVX-512";
  float rows[256], sums[16];
  for (int i = 0; i < 256; ++i) rows[i] = static_cast<float>(i * 7919 % 1009);
  VecKernelsFor(Isa::kAvx512).reduce_add_each(rows, sums);
  for (int r = 0; r < 16; ++r) {
    float sum = 0.f;
    for (int i = 0; i < 16; ++i) sum += rows[16 * r + i];
    EXPECT_EQ(sums[r], sum);
  }
}

// On machines that have the instructions: the emulation gives their bits, of random ones and of
// sums that round.
TEST(Vec, EmulationIsAsTheInstructions) {
  if (DetectIsa() < Isa::kAvx512) GTEST_SKIP() << "this machine lacks AVX-512";
  const VecKernels &real = avx512::kVecKernels, &emulated = avx512_emulated::kVecKernels;
  constexpr int kFloats = 4096;
  std::vector<float> a(kFloats), b(kFloats), c(kFloats), expected(kFloats), got(kFloats);
  uint32_t state = 1;
  for (std::vector<float>* v : {&a, &b, &c}) {
    for (float& x : *v) {
      state = state * 1664525 + 1013904223;
      memcpy(&x, &state, sizeof x);
    }
  }
  const auto expect_same = [&](int word, int n) {
    for (int i = 0; i < n; ++i) {
      if (std::isnan(expected[i]) && std::isnan(got[i])) continue;
      ASSERT_EQ(memcmp(&got[i], &expected[i], sizeof(float)), 0)
          << "word " << word << " of " << a[i] << ", " << b[i] << ", " << c[i];
    }
  };
  for (int word = 0; word <= static_cast<int>(VecWord::kSwapNeighbours); ++word) {
    const VecWord w = static_cast<VecWord>(word);
    if (w == VecWord::kScaleByPow2) continue;  // its arguments are few, see above
    real.apply(w, a.data(), b.data(), c.data(), expected.data(), kFloats);
    emulated.apply(w, a.data(), b.data(), c.data(), got.data(), kFloats);
    expect_same(word, kFloats);
  }
  std::vector<float> rows(256);
  for (int i = 0; i < 256; ++i) rows[i] = 1.f / (i + 1);
  real.reduce_add_each(rows.data(), expected.data());
  emulated.reduce_add_each(rows.data(), got.data());
  expect_same(-1, 16);
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(real.reduce_add(&rows[16 * i]), emulated.reduce_add(&rows[16 * i]));
  }
}

TEST(Vec, KeepFirstTakesAnyCount) {
  const std::vector<float> src(16, NAN);
  for (Isa isa : TestIsas()) {
    const VecKernels& kernels = VecKernelsFor(isa);
    for (int n = -20; n <= 20; ++n) {
      std::vector<float> dst(16);
      kernels.keep_first(src.data(), dst.data(), n);
      for (int i = 0; i < kernels.lanes; ++i) {
        EXPECT_EQ(std::isnan(dst[i]), i < n) << IsaName(isa);
        if (i >= n) {
          EXPECT_EQ(dst[i], 0.f);
        }
      }
    }
  }
}

// Rows that overlap, follow one another or have something between them; one row in all quads.
TEST(Vec, QuadsAreReadAndWrittenAnywhere) {
  for (Isa isa : TestIsas()) {
    const VecKernels& kernels = VecKernelsFor(isa);
    const int quads = kernels.lanes / 4;
    for (int64_t from : {0, 1, 4, 7}) {
      for (int64_t to : {4, 5}) {
        GuardedBuffer src(from * (quads - 1) + 4), dst(to * (quads - 1) + 4);
        src.FillIntegers(1);
        dst.Fill(NAN);
        kernels.copy_quads(src.data(), from, dst.data(), to);
        for (int64_t i = 0; i < to * (quads - 1) + 4; ++i) {
          const int64_t quad = i / to, lane = i % to;
          ExpectSame(dst[i], lane < 4 ? src[quad * from + lane] : NAN, isa, from, to);
        }
      }
    }
  }
}

TEST(Vec, LanesOfQuadsChangePlaces) {
  std::vector<float> a(16), dst(16);
  for (int i = 0; i < 16; ++i) a[i] = i;
  for (Isa isa : TestIsas()) {
    const auto expect = [&](VecWord word, int flip) {
      VecKernelsFor(isa).apply(word, a.data(), a.data(), a.data(), dst.data(), 16);
      for (int i = 0; i < 16; ++i) EXPECT_EQ(dst[i], a[i ^ flip]) << IsaName(isa);
    };
    expect(VecWord::kSwapPairs, 2);
    expect(VecWord::kSwapNeighbours, 1);
  }
}

}  // namespace
}  // namespace bd
