#include "cc/core/pad/pad.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/cc/core/pad/pad_ref.h"
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

// Of one byte and two: zeros are zero points.
TEST(Pad, OfOtherTypes) {
  ThreadPool pool(2);
  for (const ElementType& type :
       {ElementType{DataType::u8, {0.5f, 131}}, ElementType{DataType::bf16, {}}}) {
    PadDesc desc = {2, 3, 4, 1, -1, 2, 3};
    const int64_t bytes = SizeOf(type.dtype), floats = 2 * 3 * 9 * 16;
    GuardedBuffer src(2 * 3 * 4 * 16), expected(floats), dst((floats * bytes + 3) / 4);
    src.FillIntegers(5);
    for (float& x : src) x = x - 8;  // small integers, which every type has
    PadRef(desc, src.data(), expected.data());
    const auto stored = [&](float x) {
      const int64_t number = static_cast<int64_t>(x) + type.quantization.zero_point;
      return type.dtype == DataType::u8 ? number : x == 0 ? 0 : 0x3f80 + number;
    };
    std::vector<char> typed(src.size() * bytes);
    for (size_t i = 0; i < src.size(); ++i) {
      const int64_t number = stored(src[i]);
      memcpy(&typed[i * bytes], &number, bytes);
    }
    desc.type = type;
    PadPlan plan;
    ASSERT_EQ(MakePadPlan(desc, &plan), "");
    RunPad(plan, typed.data(), dst.data(), pool);
    for (int64_t i = 0; i < floats; ++i) {
      const int64_t number = stored(expected[i]);
      ASSERT_EQ(memcmp(reinterpret_cast<char*>(dst.data()) + i * bytes, &number, bytes), 0) << i;
    }
  }
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
