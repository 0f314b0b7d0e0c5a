#include "cc/core/pad/pad.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

#include "tests/cc/guarded_buffer.h"

namespace bd {
namespace {

void Check(const PadDesc& d, ThreadPool& pool) {
  PadPlan plan;
  ASSERT_EQ(MakePadPlan(d, &plan), "");
  const int64_t floats = d.planes * d.dst_height() * d.dst_width() * 16;
  GuardedBuffer src(d.planes * d.height * d.width * 16), dst(floats), expected(floats);
  src.FillIntegers(7);
  RunPad(plan, src.data(), dst.data(), pool);
  PadRef(d, src.data(), expected.data());
  ASSERT_EQ(memcmp(dst.data(), expected.data(), floats * sizeof(float)), 0)
      << d.top << " " << d.bottom << " " << d.left << " " << d.right;
}

// All signs on all sides, cut off altogether among them.
TEST(Pad, EverySide) {
  ThreadPool pool(2);
  for (int64_t top : {-3, 0, 2}) {
    for (int64_t bottom : {-2, 0, 1}) {
      for (int64_t left : {-4, 0, 3}) {
        for (int64_t right : {-1, 0, 5}) Check({3, 5, 6, top, bottom, left, right}, pool);
      }
    }
  }
  Check({2, 3, 3, 5, -5, 0, 0}, pool);  // nothing of src is left
  Check({2, 3, 3, 0, 0, -5, 5}, pool);
  Check({2, 3, 3, -3, 0, 0, 0}, pool);  // nothing at all
}

TEST(Pad, ManyTasks) {
  ThreadPool pool(2);
  Check({6, 112, 112, 1, 1, 1, 1}, pool);
}

TEST(Pad, EmptyAndRefused) {
  ThreadPool pool(1);
  Check({0, 5, 5, 1, 1, 1, 1}, pool);
  Check({2, 0, 5, 1, 1, 0, 0}, pool);
  PadPlan plan;
  EXPECT_NE(MakePadPlan({1, 3, 3, -2, -2, 0, 0}, &plan), "");
  EXPECT_NE(MakePadPlan({1, 3, 3, 0, 0, -4, 0}, &plan), "");
}

}  // namespace
}  // namespace bd
