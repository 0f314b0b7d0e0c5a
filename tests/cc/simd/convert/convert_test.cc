// cc/simd/convert/convert.h does what it says, the same on every ISA.
#include <gtest/gtest.h>
#include <immintrin.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "tests/cc/convert_ref.h"
#include "tests/cc/isas.h"
#include "tests/cc/simd/convert/convert_kernel.h"
#include "tests/cc/ulp.h"

namespace bd {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// Every exponent with mantissas around each rounding boundary of 7 and of 10 bits,
// NaNs with payloads, and integers and halves around the bounds of the types.
std::vector<float> Floats() {
  std::vector<float> floats;
  for (uint32_t exponent = 0; exponent < 256; ++exponent) {
    for (uint32_t mantissa :
         {0u,       1u,        0x7ffu,    0x800u,    0xfffu,    0x1000u,  0x1001u,
          0x2fffu,  0x3000u,   0x7fffu,   0x8000u,   0x8001u,   0x17fffu, 0x18000u,
          0x2aaaau, 0x3fffffu, 0x400000u, 0x7fefffu, 0x7ff000u, 0x7fffffu}) {
      const uint32_t bits = exponent << 23 | mantissa;
      floats.push_back(FloatFromBits(bits));
      floats.push_back(FloatFromBits(bits | 0x80000000u));
    }
  }
  for (float bound : {0.f, 127.f, 128.f, 255.f, 256.f, 65504.f, 65520.f, 0x1p24f, 0x1p31f}) {
    for (float step : {0.f, 0.5f, 1.f, 1.5f, 2.5f}) {
      for (float value : {bound - step, bound + step, std::nextafter(bound - step, kInf),
                          std::nextafter(bound + step, -kInf)}) {
        floats.push_back(value);
        floats.push_back(-value);
      }
    }
  }
  floats.resize((floats.size() + 15) / 16 * 16, 0.f);
  return floats;
}

class Convert : public testing::TestWithParam<Isa> {
 protected:
  const ConvertKernels& kernels() const { return ConvertKernelsFor(GetParam()); }

  void ExpectStoresLikeReference(DataType dtype) const {
    const std::vector<float> src = Floats();
    const int64_t bytes = SizeOf(dtype);
    std::vector<char> got(src.size() * bytes), expected(src.size() * bytes);
    kernels().store[static_cast<int>(dtype)](src.data(), got.data(), src.size());
    for (size_t i = 0; i < src.size(); ++i) {
      StoreFloatRef(dtype, src[i], expected.data(), i);
      ASSERT_EQ(memcmp(&got[i * bytes], &expected[i * bytes], bytes), 0)
          << DataTypeName(dtype) << " of " << src[i] << " is "
          << LoadAsFloatRef(dtype, got.data(), i) << ", not "
          << LoadAsFloatRef(dtype, expected.data(), i);
    }
  }

  // Of 16-bit floats, or of the lower bytes of all 16-bit numbers.
  void ExpectLoadsLikeReference(DataType dtype) const {
    constexpr int kCodes = 65536;
    std::vector<char> src(kCodes * SizeOf(dtype));
    for (int i = 0; i < kCodes; ++i) {
      const uint32_t code = SizeOf(dtype) == 4 ? i * 65537u : i;
      memcpy(&src[i * SizeOf(dtype)], &code, SizeOf(dtype));
    }
    std::vector<float> got(kCodes);
    kernels().load[static_cast<int>(dtype)](src.data(), got.data(), kCodes);
    for (int i = 0; i < kCodes; ++i) {
      const float expected = LoadAsFloatRef(dtype, src.data(), i);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(got[i])) << DataTypeName(dtype) << " " << i;
        ASSERT_EQ(std::signbit(expected), std::signbit(got[i]));
      } else {
        ASSERT_EQ(memcmp(&got[i], &expected, sizeof(float)), 0)
            << DataTypeName(dtype) << " " << i << " is " << got[i] << ", not " << expected;
      }
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Isas, Convert, testing::ValuesIn(TestIsas()), IsaParam);

TEST_P(Convert, StoresMatchTheReference) {
  for (int i = 0; i < kNumDataTypes; ++i) ExpectStoresLikeReference(static_cast<DataType>(i));
}

TEST_P(Convert, LoadsMatchTheReference) {
  for (int i = 0; i < kNumDataTypes; ++i) ExpectLoadsLikeReference(static_cast<DataType>(i));
}

// TensorFlow computes with denormals flushed; halves and bfloat16 keep theirs.
TEST_P(Convert, FlushingDenormalsChangesNothing) {
  const unsigned mode = _mm_getcsr();
  _mm_setcsr(mode | _MM_FLUSH_ZERO_ON | 0x40 /* denormals are zero */);
  const std::vector<float> tiny(16, 0x1.8p-24f);
  std::vector<uint16_t> half(16), codes(16, 3);
  std::vector<float> halves(16), brains(16);
  kernels().store[static_cast<int>(DataType::f16)](tiny.data(), half.data(), 16);
  kernels().load[static_cast<int>(DataType::f16)](codes.data(), halves.data(), 16);
  kernels().load[static_cast<int>(DataType::bf16)](codes.data(), brains.data(), 16);
  _mm_setcsr(mode);
  EXPECT_EQ(half, std::vector<uint16_t>(16, 2));
  EXPECT_EQ(halves, std::vector<float>(16, 0x3p-24f));
  EXPECT_EQ(brains, std::vector<float>(16, 0x3p-133f));
}

// The documented cases, one by one, of the reference itself.
TEST(ConvertRef, KnownValues) {
  const auto store = [](DataType dtype, float value) {
    int32_t stored = 0;
    StoreFloatRef(dtype, value, &stored, 0);
    return stored;
  };
  EXPECT_EQ(store(DataType::s32, 2147483648.f), 2147483647);
  EXPECT_EQ(store(DataType::s32, 2147483520.f), 2147483520);
  EXPECT_EQ(store(DataType::s32, -2147483648.f), INT32_MIN);
  EXPECT_EQ(store(DataType::s32, -3e9f), INT32_MIN);
  EXPECT_EQ(store(DataType::s32, NAN), 0);
  EXPECT_EQ(store(DataType::s32, 2.5f), 2);
  EXPECT_EQ(store(DataType::s32, -3.5f), -4);
  EXPECT_EQ(static_cast<int8_t>(store(DataType::s8, -1000.f)), -128);
  EXPECT_EQ(store(DataType::s8, kInf), 127);
  EXPECT_EQ(store(DataType::u8, -1.f), 0);
  EXPECT_EQ(store(DataType::u8, 254.5f), 254);
  EXPECT_EQ(store(DataType::u8, 255.5f), 255);
  EXPECT_EQ(store(DataType::bf16, 1.f), 0x3f80);
  EXPECT_EQ(store(DataType::bf16, 1.00390625f), 0x3f80);  // 1 + 2^-8, a tie
  EXPECT_EQ(store(DataType::bf16, 3.4e38f), 0x7f80);
  EXPECT_EQ(store(DataType::f16, 65519.f), 0x7bff);
  EXPECT_EQ(store(DataType::f16, 65520.f), 0x7c00);
  EXPECT_EQ(store(DataType::f16, -0x1p-25f), 0x8000);
  EXPECT_EQ(store(DataType::f16, 0x1.8p-25f), 1);
}

}  // namespace
}  // namespace bd
