#include "cc/base/verbose.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>

namespace bd {
namespace {

// The environment is read once, so each case is a process of its own.
void RunUnder(const char* value) {
  if (value == nullptr) {
    unsetenv("TF_BLOCKDNN_VERBOSE");
  } else {
    setenv("TF_BLOCKDNN_VERBOSE", value, 1);
  }
  int runs = 0, descriptions = 0;
  for (int i = 0; i < 2; ++i) {
    RunLogged(
        [&] {
          ++descriptions;
          return std::string("reorder avx2 nhwc->nChw16c");
        },
        [&] { ++runs; });
  }
  exit(10 * runs + descriptions);
}

TEST(VerboseDeathTest, OneLineAnExecution) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string line = "tf_blockdnn reorder avx2 nhwc->nChw16c [0-9]+\\.[0-9]us\n";
  EXPECT_EXIT(RunUnder("1"), testing::ExitedWithCode(22), "^" + line + line + "$");
}

TEST(VerboseDeathTest, SilentUnlessAsked) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const char* value : {static_cast<const char*>(nullptr), "", "0"}) {
    EXPECT_EXIT(RunUnder(value), testing::ExitedWithCode(20), "^$");
  }
}

}  // namespace
}  // namespace bd
