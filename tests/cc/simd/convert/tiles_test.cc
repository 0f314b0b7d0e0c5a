// The tiles of AMX, or what stands for them, against the manual's definition.
#include <gtest/gtest.h>
#include <immintrin.h>

#include <cstring>
#include <random>

#include "tests/cc/isas.h"
#include "tests/cc/simd/convert/tiles_kernel.h"
#include "tests/cc/ulp.h"

namespace bd {
namespace {

using Tile = uint8_t[16][64];

class TilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (BestTestIsa(Isa::kAvx512Amx) < Isa::kAvx512Amx) GTEST_SKIP() << "there is no emulation";
    for (Tile& tile : tiles_) {
      for (auto& row : tile) {
        for (uint8_t& byte : row) byte = static_cast<uint8_t>(rng_());
      }
    }
    memcpy(before_, tiles_, sizeof(tiles_));
  }

  // Sums of m rows and n columns, of k dwords.
  static TileConfig Of(int m, int n, int k) {
    TileConfig config;
    config.Set(0, m, 4 * n);
    config.Set(1, m, 4 * k);
    config.Set(2, k, 4 * n);
    return config;
  }

  template <typename T>
  T At(int tile, int row, int i) const {
    T x;
    memcpy(&x, before_[tile][row] + i * sizeof(T), sizeof(T));
    return x;
  }

  void Multiply(const TileConfig& config, bool bytes) {
    TilesKernelsFor(Isa::kAvx512Amx).multiply(config, bytes, tiles_);
  }

  // Sums that are there are `expected(row, column)`, and every other byte is as it was.
  template <typename T, typename Fn>
  void Expect(int m, int n, const Fn& expected) {
    for (int i = 0; i < m; ++i) {
      for (int j = 0; j < n; ++j) {
        T x;
        memcpy(&x, tiles_[0][i] + j * sizeof(T), sizeof(T));
        const T y = expected(i, j);
        const bool nan = x != x && y != y;
        ASSERT_TRUE(nan || memcmp(&x, &y, sizeof(T)) == 0)
            << x << ", not " << y << " at " << i << " " << j;
        memcpy(tiles_[0][i] + j * sizeof(T), before_[0][i] + j * sizeof(T), sizeof(T));
      }
    }
    EXPECT_EQ(memcmp(tiles_, before_, sizeof(tiles_)), 0);
  }

  std::mt19937 rng_{5};
  alignas(64) Tile tiles_[3];
  Tile before_[3];
};

constexpr int kSizes[][3] = {{16, 16, 16}, {1, 16, 16}, {16, 16, 3}, {7, 5, 16}, {1, 1, 1}};

TEST_F(TilesTest, BytesAreUnsignedBySigned) {
  for (const auto& [m, n, k] : kSizes) {
    SetUp();
    Multiply(Of(m, n, k), true);
    Expect<int32_t>(m, n, [&, of_k = k](int i, int j) {
      uint32_t sum = At<uint32_t>(0, i, j);
      for (int x = 0; x < 4 * of_k; ++x) {
        sum += static_cast<uint32_t>(At<uint8_t>(1, i, x) * At<int8_t>(2, x / 4, 4 * j + x % 4));
      }
      return static_cast<int32_t>(sum);
    });
  }
}

// The processor itself flushes denormal numbers for us.
__attribute__((target("fma"))) float Fma(volatile float a, volatile float b, volatile float c) {
  const __m128 sum = _mm_fmadd_ss(_mm_set_ss(a), _mm_set_ss(b), _mm_set_ss(c));
  return _mm_cvtss_f32(sum);
}

// First numbers of pairs are added up from zero on, and second ones, then both, then C and that.
// Bits at random; and about the least normal number, where much is flushed.
TEST_F(TilesTest, PairsOfBfloat16InTheOrderOfTheManual) {
  for (bool small : {false, true}) {
    for (const auto& [m, n, k] : kSizes) {
      SetUp();
      if (small) {
        for (int tile : {1, 2}) {
          for (auto& row : tiles_[tile]) {
            for (int i = 0; i < 32; ++i) {
              const auto bits = static_cast<uint16_t>((rng_() & 0x807f) | (62 + rng_() % 3) << 7);
              memcpy(row + 2 * i, &bits, sizeof(bits));
            }
          }
        }
        for (auto& row : tiles_[0]) {
          for (int i = 0; i < 16; ++i) row[4 * i + 3] &= 0x81, row[4 * i + 2] &= 0x7f;
        }
        memcpy(before_, tiles_, sizeof(tiles_));
      }
      Multiply(Of(m, n, k), false);
      const unsigned mode = _mm_getcsr();
      _mm_setcsr(0x1f80 | _MM_FLUSH_ZERO_ON | _MM_DENORMALS_ZERO_ON);
      Expect<float>(m, n, [&, of_k = k](int i, int j) {
        float sums[2] = {};
        for (int x = 0; x < 2 * of_k; ++x) {
          const float a = FloatFromBits(uint32_t{At<uint16_t>(1, i, x)} << 16);
          const float b = FloatFromBits(uint32_t{At<uint16_t>(2, x / 2, 2 * j + x % 2)} << 16);
          sums[x % 2] = Fma(a, b, sums[x % 2]);
        }
        return Fma(At<float>(0, i, j), 1.f, Fma(sums[0], 1.f, sums[1]));
      });
      _mm_setcsr(mode);
    }
  }
}

// On a machine that has tiles it is another signal.
using TilesDeathTest = TilesTest;
TEST_F(TilesDeathTest, FaultsWhereTheProcessorDoes) {
  GTEST_FLAG_SET(death_test_style, "fast");
  TileConfig palette = Of(16, 16, 16), start = palette, many = palette, wide = palette,
             half = palette, ninth = palette, reserved = palette;
  palette.palette = 2;
  start.start_row = 1;
  many.Set(1, 17, 64);
  wide.Set(1, 16, 68);
  half.Set(1, 16, 0);
  ninth.Set(8, 16, 64);
  reserved.reserved[13] = 1;
  for (const TileConfig& bad : {palette, start, many, wide, half, ninth, reserved}) {
    EXPECT_DEATH(Multiply(bad, true), "");
  }
  TileConfig rows = Of(16, 16, 16), columns = rows, of_k = rows, missing = rows;
  rows.Set(1, 15, 64);
  columns.Set(0, 16, 60);
  of_k.Set(1, 16, 60);
  missing.Set(2, 0, 0);
  for (const TileConfig& unfit : {rows, columns, of_k, missing}) {
    EXPECT_DEATH(Multiply(unfit, false), "");
  }
  EXPECT_DEATH(TilesKernelsFor(Isa::kAvx512Amx).load_missing(Of(16, 16, 16), tiles_[0][0]), "");
}

}  // namespace
}  // namespace bd
