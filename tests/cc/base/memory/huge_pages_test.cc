#include "cc/base/memory/huge_pages.h"

#include <gtest/gtest.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
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

// What shares a range of 2 MB with a tensor keeps its contents and stays unreadable where it was.
TEST(HugePages, NeighboursStayAsTheyAre) {
  constexpr size_t kRange = size_t{2} << 20, kPage = 4096;
  char* const mapped = static_cast<char*>(
      mmap(nullptr, 3 * kRange, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(mapped, MAP_FAILED);
  char* const range =
      reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(mapped) + kRange - 1) / kRange * kRange);
  memset(range, 7, kRange);
  ASSERT_EQ(mprotect(range, kPage, PROT_NONE), 0);
  PreferHugePages(range + kRange / 2, kRange / 4);
  EXPECT_EQ(std::count(range + kPage, range + kRange, 7), kRange - kPage);
  EXPECT_DEATH(range[0] = 1, "");
  munmap(mapped, 3 * kRange);
}

}  // namespace
}  // namespace bd
