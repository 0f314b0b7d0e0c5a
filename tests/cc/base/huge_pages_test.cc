#include "cc/base/huge_pages.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>
#include <vector>

namespace bd {
namespace {

TEST(HugePages, ContentsStay) {
  std::vector<int> values((8 << 20) / sizeof(int));
  std::iota(values.begin(), values.end(), 1);
  const std::vector<int> before = values;
  for (int calls = 0; calls < 2; ++calls) {
    PreferHugePages(values.data(), values.size() * sizeof(int));
    EXPECT_EQ(values, before);
  }
}

TEST(HugePages, AnythingMayBeAskedFor) {
  PreferHugePages(nullptr, 0);
  PreferHugePages(nullptr, size_t{64} << 20);  // mapped by nobody
  static const char constant[1 << 20] = "read-only";
  PreferHugePages(constant, sizeof(constant));
  EXPECT_STREQ(constant, "read-only");
}

}  // namespace
}  // namespace bd
