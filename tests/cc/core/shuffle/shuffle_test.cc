#include "cc/core/shuffle/shuffle.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "tests/cc/core/shuffle/shuffle_ref.h"
#include "tests/cc/guarded_array.h"
#include "tests/cc/isas.h"

namespace bd {
namespace {

std::string Text(const ShuffleDesc& d) {
  return "outer " + std::to_string(d.outer) + " channels " + std::to_string(d.channels) +
         " inner " + std::to_string(d.inner) + " group " + std::to_string(d.group) + " block " +
         std::to_string(d.block) + " bytes " + std::to_string(d.element_bytes);
}

// All bytes differ from their neighbours; a blocked src has garbage in its tail.
void Fill(int64_t size, uint8_t* data) {
  uint32_t state = 1;
  for (int64_t i = 0; i < size; ++i) {
    state = state * 1664525u + 1013904223u;
    data[i] = static_cast<uint8_t>(state >> 24);
  }
}

class Shuffle : public testing::TestWithParam<Isa> {
 protected:
  ShufflePlan Plan(const ShuffleDesc& desc) {
    ShufflePlan plan;
    EXPECT_EQ(MakeShufflePlan(desc, GetParam(), &plan), "");
    return plan;
  }

  void Check(const ShuffleDesc& desc, GuardedBuffer::Guard guard) {
    SCOPED_TRACE(Text(desc));
    const int64_t size = desc.size_bytes();
    GuardedArray src(size, guard), dst(size, guard);
    std::vector<uint8_t> expected(size);
    Fill(size, src.As<uint8_t>());
    RunShuffle(Plan(desc), src.data(), dst.data(), pool_);
    ShuffleRef(desc, src.As<uint8_t>(), expected.data());
    for (int64_t i = 0; i < size; ++i) {
      ASSERT_EQ(dst.As<uint8_t>()[i], expected[i]) << "at byte " << i;
    }
  }

  void CheckBothEnds(const ShuffleDesc& desc) {
    Check(desc, GuardedBuffer::kAtEnd);
    Check(desc, GuardedBuffer::kAtStart);
  }

  ThreadPool pool_{2};
};
INSTANTIATE_TEST_SUITE_P(Isas, Shuffle, testing::ValuesIn(TestIsas()), IsaParam);

TEST_P(Shuffle, EveryDivisorOfManySizes) {
  for (int64_t bytes : {1, 2, 4, 8}) {
    for (int64_t channels : {1, 2, 3, 4, 6, 12, 15, 16, 17, 24, 36, 64, 99, 240}) {
      for (int64_t group = 1; group <= channels; ++group) {
        if (channels % group != 0) continue;
        for (int64_t outer : {1, 2, 7, 37}) CheckBothEnds({outer, channels, 1, group, 1, bytes});
      }
    }
  }
}

TEST_P(Shuffle, EntriesOfManyBytes) {
  for (int64_t bytes : {1, 2, 4, 8}) {
    for (int64_t inner : {2, 3, 4, 5, 7, 8, 16, 31, 63, 64, 100, 257, 300}) {
      CheckBothEnds({3, 12, inner, 3, 1, bytes});
      CheckBothEnds({1, 12, inner, 4, 1, bytes});
    }
  }
}

TEST_P(Shuffle, BlocksOf8And16) {
  for (int64_t bytes : {1, 2, 4, 8}) {
    for (int64_t block : {8, 16}) {
      for (int64_t channels : {6, 8, 12, 16, 17, 24, 40, 60, 240}) {
        for (int64_t group : {1, 2, 3, 4, 5, 6, 12, 17, 20, 40, 60, 80, 120}) {
          if (channels % group != 0) continue;
          for (int64_t pixels : {1, 2, 3, 9, 20}) {
            CheckBothEnds({2, channels, pixels, group, block, bytes});
            if (bytes == 1) CheckBothEnds({2, channels, pixels, group, block, bytes, 128});
          }
        }
      }
    }
  }
}

// Every way to run, of several tasks each.
TEST_P(Shuffle, LargeTensors) {
  const struct {
    ShuffleDesc desc;
    ShuffleMethod method;
  } cases[] = {
      {{5, 300, 1001, 1, 1, 1}, ShuffleMethod::kCopy},
      {{2, 96, 33 * 31, 3, 1, 4}, ShuffleMethod::kCopyEntries},
      {{3001, 90, 1, 3, 1, 4}, ShuffleMethod::kPermute},
      {{3001, 240, 1, 80, 1, 1}, ShuffleMethod::kPermute},
      {{2, 90, 1111, 3, 16, 4}, ShuffleMethod::kPermute},
      {{2, 90, 1111, 30, 8, 2}, ShuffleMethod::kPermute},
      {{3, 60000, 1, 40, 1, 4}, ShuffleMethod::kTranspose},
      {{1, 300000, 1, 2, 1, 8}, ShuffleMethod::kTranspose},
      {{1, 300000, 1, 150000, 1, 1}, ShuffleMethod::kTranspose},
      {{1, 300000, 1, 1000, 1, 2}, ShuffleMethod::kTranspose},
      {{1, 60000, 5, 300, 1, 1}, ShuffleMethod::kTranspose},
      {{2, 20010, 9, 3, 8, 4}, ShuffleMethod::kPermute},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(Text(c.desc));
    const ShufflePlan plan = Plan(c.desc);
    EXPECT_EQ(plan.method, c.method);
    EXPECT_GT(plan.tasks, 1);
    Check(c.desc, GuardedBuffer::kAtEnd);
  }
}

TEST_P(Shuffle, WithTheOtherFactorIsTheWayBack) {
  for (int64_t block : {1, 8, 16}) {
    ShuffleDesc there = {2, 48, 35, 3, block, 4};
    ShuffleDesc back = there;
    back.group = there.channels / there.group;
    const int64_t size = there.size_bytes();
    std::vector<uint8_t> src(size), shuffled(size), again(size);
    Fill(size, src.data());
    RunShuffle(Plan(there), src.data(), shuffled.data(), pool_);
    RunShuffle(Plan(back), shuffled.data(), again.data(), pool_);
    EXPECT_NE(src, shuffled);
    EXPECT_EQ(src, again);
  }
}

TEST_P(Shuffle, EmptyTensors) {
  for (int64_t block : {1, 8}) {
    for (const ShuffleDesc& desc :
         {ShuffleDesc{0, 12, 5, 3, block, 4}, ShuffleDesc{2, 0, 5, 3, block, 4},
          ShuffleDesc{2, 12, 0, 3, block, 4}}) {
      const ShufflePlan plan = Plan(desc);
      EXPECT_EQ(plan.tasks, 0);
      RunShuffle(plan, nullptr, nullptr, pool_);
    }
  }
}

TEST(ShufflePlan, SmallTensorsAreOneTask) {
  ShufflePlan plan;
  ASSERT_EQ(MakeShufflePlan({49, 240, 1, 3, 1, 4}, DetectIsa(), &plan), "");
  EXPECT_EQ(plan.tasks, 1);
}

TEST(ShufflePlan, NamesWhatIsWrong) {
  ShufflePlan plan;
  const auto error = [&](const ShuffleDesc& d) { return MakeShufflePlan(d, Isa::kGeneric, &plan); };
  EXPECT_EQ(error({1, 12, 1, 5, 1, 4}), "group = 5 must divide the 12 entries of the axis");
  EXPECT_EQ(error({1, 12, 1, 0, 1, 4}), "group must be at least 1, got 0");
  EXPECT_EQ(error({-1, 12, 1, 3, 1, 4}), "shuffle of a negative size, or one that is too large");
  EXPECT_EQ(error({1, 12, 1, 3, 4, 4}), "shuffle knows blocks of 8 and 16 channels, not of 4");
  EXPECT_EQ(error({1, 12, 1, 3, 1, 3}), "shuffle knows elements of 1, 2, 4 and 8 bytes, not of 3");
}

// ShuffleNet's 3 groups of 4 channels are G = 4.
TEST(ShuffleRef, ByHand) {
  uint8_t src[12], dst[12];
  std::iota(src, src + 12, 0);
  ShuffleRef({1, 12, 1, 3, 1, 1}, src, dst);
  EXPECT_EQ(std::vector<uint8_t>(dst, dst + 12),
            (std::vector<uint8_t>{0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11}));
  ShuffleRef({1, 12, 1, 4, 1, 1}, src, dst);
  EXPECT_EQ(std::vector<uint8_t>(dst, dst + 12),
            (std::vector<uint8_t>{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}));
}

TEST(ShuffleRef, WritesTheTail) {
  uint8_t src[8] = {0, 1, 2, 3, 4, 5, 99, 99}, dst[8];
  ShuffleRef({1, 6, 1, 2, 8, 1}, src, dst);
  EXPECT_EQ(std::vector<uint8_t>(dst, dst + 8), (std::vector<uint8_t>{0, 2, 4, 1, 3, 5, 0, 0}));
}

}  // namespace
}  // namespace bd
