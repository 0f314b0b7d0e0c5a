#include "cc/base/cpu/isa.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <vector>

#include "tests/cc/isas.h"

namespace bd {
namespace {

TEST(Isa, Names) {
  EXPECT_STREQ(IsaName(Isa::kGeneric), "generic");
  EXPECT_STREQ(IsaName(Isa::kAvx2), "avx2");
  EXPECT_STREQ(IsaName(Isa::kAvx2Vnni), "avx2_vnni");
  EXPECT_STREQ(IsaName(Isa::kAvx512), "avx512");
  EXPECT_STREQ(IsaName(Isa::kAvx512Vnni), "avx512_vnni");
  EXPECT_STREQ(IsaName(Isa::kAvx512Bf16), "avx512_bf16");
  EXPECT_STREQ(IsaName(Isa::kAvx512Amx), "avx512_amx");
}

TEST(Isa, TestsRunFromGenericUpToTheBest) {
  const std::vector<Isa> isas = TestIsas();
  EXPECT_EQ(isas.front(), Isa::kGeneric);
  if (DetectIsa() < Isa::kAvx2) {
    EXPECT_EQ(isas.back(), DetectIsa());
  } else {
    EXPECT_EQ(isas.back(), Isa::kAvx512);
    EXPECT_EQ(TestIsas(Isa::kAvx512Amx).back(), Isa::kAvx512Amx);
    EXPECT_EQ(TestIsas(Isa::kAvx512Amx).size() + 1, TestIsasOfBytes().size());
  }
}

// ActiveIsa() reads the environment once, so each case is a process of its own,
// which exits with the ISA it found.
using IsaDeathTest = testing::TestWithParam<Isa>;
INSTANTIATE_TEST_SUITE_P(Caps, IsaDeathTest,
                         testing::Values(Isa::kGeneric, Isa::kAvx2, Isa::kAvx2Vnni, Isa::kAvx512,
                                         Isa::kAvx512Vnni, Isa::kAvx512Bf16, Isa::kAvx512Amx));

TEST_P(IsaDeathTest, EnvironmentCaps) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Isa best = std::min(GetParam(), DetectIsa());
  if (!RunsHere(best)) best = Isa::kAvx2;  // avx2_vnni, where AVX-512 is there without
  const int expected = static_cast<int>(best);
  EXPECT_EXIT(
      {
        setenv("TF_BLOCKDNN_MAX_ISA", IsaName(GetParam()), 1);
        exit(static_cast<int>(ActiveIsa()));
      },
      testing::ExitedWithCode(expected), "^$");
}

TEST(IsaNameDeathTest, UnknownNameCapsNothingAndIsReportedOnce) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("TF_BLOCKDNN_MAX_ISA", "sse9", 1);
        ActiveIsa();
        exit(static_cast<int>(ActiveIsa()));
      },
      testing::ExitedWithCode(static_cast<int>(DetectIsa())),
      "^tf_blockdnn: TF_BLOCKDNN_MAX_ISA=sse9 is unknown[^\n]*avx512_bf16 or avx512_amx\n$");
}

}  // namespace
}  // namespace bd
