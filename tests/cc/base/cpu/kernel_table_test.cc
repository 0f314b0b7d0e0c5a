#include "cc/base/cpu/kernel_table.h"

#include <gtest/gtest.h>

namespace bd {

struct TestTable {
  const char* name;
};

BD_KERNEL_TABLE_OF(TestTable, generic, avx2, avx512, avx512_bf16)

#define BD_DEFINE_TABLE(isa)           \
  namespace isa {                      \
  const TestTable kTestTable = {#isa}; \
  }
BD_DEFINE_TABLE(generic)
BD_DEFINE_TABLE(avx2)
BD_DEFINE_TABLE(avx512)
BD_DEFINE_TABLE(avx512_bf16)
BD_DEFINE_TABLE(avx512_emulated)  // of avx512_bf16 there is no emulation

namespace {

// The highest set that is not above the one asked for, and its emulation only where there is one
// and the machine lacks the set.
TEST(KernelTable, FallsToTheNextLowerSet) {
  EXPECT_STREQ(TestTableFor(Isa::kGeneric).name, "generic");
  EXPECT_STREQ(TestTableFor(Isa::kAvx2).name, "avx2");
  const char* const avx512 = RunsHere(Isa::kAvx512) ? "avx512" : "avx512_emulated";
  EXPECT_STREQ(TestTableFor(Isa::kAvx512).name, avx512);
  EXPECT_STREQ(TestTableFor(Isa::kAvx512Vnni).name, avx512);
  EXPECT_STREQ(TestTableFor(Isa::kAvx512Bf16).name, "avx512_bf16");
  EXPECT_STREQ(TestTableFor(Isa::kAvx512Amx).name, "avx512_bf16");
}

TEST(KernelTable, EmulatesOnRequest) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("BD_TEST_EMULATE", "1", 1);
        fputs(TestTableFor(Isa::kAvx512).name, stderr);
        exit(0);
      },
      testing::ExitedWithCode(0), "^avx512_emulated$");
}

}  // namespace
}  // namespace bd
