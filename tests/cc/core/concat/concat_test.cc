#include "cc/core/concat/concat.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/cc/guarded_buffer.h"
#include "tests/cc/isas.h"

namespace bd {
namespace {

int64_t BlockedSize(int64_t n, int64_t channels, int64_t pixels) {
  return n * ((channels + 15) / 16) * pixels * 16;
}

// A different value for every logical element, zeros in the tail.
void FillSrc(int64_t channels, int64_t pixels, float first, GuardedBuffer* src) {
  const int64_t blocks = (channels + 15) / 16;
  for (size_t i = 0; i < src->size(); ++i) {
    const int64_t c = static_cast<int64_t>(i) / (pixels * 16) % blocks * 16 + i % 16;
    (*src)[i] = c < channels ? first + static_cast<float>(i) : 0.f;
  }
}

void Check(const ConcatDesc& desc, Isa isa, ThreadPool& pool, GuardedBuffer::Guard guard) {
  SCOPED_TRACE(testing::Message() << IsaName(isa) << " n " << desc.n << " pixels " << desc.pixels
                                  << " channels " << testing::PrintToString(desc.channels));
  ConcatPlan plan;
  ASSERT_EQ(MakeConcatPlan(desc, isa, &plan), "");
  std::vector<std::unique_ptr<GuardedBuffer>> buffers;
  std::vector<const float*> srcs;
  float first = 1.f;
  for (int64_t c : desc.channels) {
    buffers.push_back(std::make_unique<GuardedBuffer>(BlockedSize(desc.n, c, desc.pixels), guard));
    FillSrc(c, desc.pixels, first, buffers.back().get());
    first += static_cast<float>(buffers.back()->size());
    srcs.push_back(buffers.back()->data());
  }
  const int64_t size = BlockedSize(desc.n, plan.dst_channels, desc.pixels);
  GuardedBuffer expected(size), dst(size, guard);
  ConcatRef(desc, srcs.data(), expected.data());
  RunConcat(plan, srcs.data(), dst.data(), pool);
  for (int64_t i = 0; i < size; ++i) ASSERT_EQ(dst[i], expected[i]) << "at " << i;
}

class ConcatOnEveryIsa : public testing::TestWithParam<Isa> {
 protected:
  void CheckBothEnds(const ConcatDesc& desc) {
    Check(desc, GetParam(), pool_, GuardedBuffer::kAtEnd);
    Check(desc, GetParam(), pool_, GuardedBuffer::kAtStart);
  }
  ThreadPool pool_{2};
};

INSTANTIATE_TEST_SUITE_P(Isas, ConcatOnEveryIsa, testing::ValuesIn(TestIsas()),
                         [](const auto& info) { return std::string(IsaName(info.param)); });

TEST_P(ConcatOnEveryIsa, WholeBlocksAreCopied) {
  for (int64_t n : {1, 3}) {
    for (int64_t pixels : {1, 9}) {
      CheckBothEnds({n, pixels, {16, 32}});
      CheckBothEnds({n, pixels, {48}});
      CheckBothEnds({n, pixels, {32, 16, 5}});  // the last may have a tail
    }
  }
}

// Every shift, of an input of one block and of several.
TEST_P(ConcatOnEveryIsa, EveryShift) {
  for (int64_t first = 1; first < 16; ++first) {
    for (int64_t pixels : {1, 2, 5}) {
      CheckBothEnds({2, pixels, {first, 16}});
      CheckBothEnds({1, pixels, {first, 40, 16 + first}});
      CheckBothEnds({1, pixels, {16 + first, first}});
    }
  }
}

TEST_P(ConcatOnEveryIsa, ManyInputsInOneBlock) {
  CheckBothEnds({1, 6, {1, 1, 1, 1, 1}});
  CheckBothEnds({2, 3, std::vector<int64_t>(20, 1)});
  CheckBothEnds({2, 3, {3, 2, 0, 7, 1, 9, 58, 24}});
}

TEST_P(ConcatOnEveryIsa, EmptyTensors) {
  CheckBothEnds({0, 4, {3, 20}});
  CheckBothEnds({2, 0, {3, 20}});
  CheckBothEnds({2, 4, {0, 0}});
  CheckBothEnds({2, 4, {0, 17, 0}});
}

// Planes cut into chunks, and many tasks.
TEST_P(ConcatOnEveryIsa, LargePlanes) {
  for (const auto& channels : std::vector<std::vector<int64_t>>{{32, 16}, {20, 13, 30}}) {
    const ConcatDesc desc = {2, 2500, channels};
    ConcatPlan plan;
    ASSERT_EQ(MakeConcatPlan(desc, GetParam(), &plan), "");
    ASSERT_GT(plan.tasks, 3);
    ASSERT_GT(plan.chunks, 1);
    CheckBothEnds(desc);
  }
}

TEST(ConcatPlan, NamesWhatIsWrong) {
  ConcatPlan plan;
  EXPECT_EQ(MakeConcatPlan({1, 4, {}}, Isa::kGeneric, &plan), "concat needs at least one input");
  EXPECT_EQ(MakeConcatPlan({1, 4, {8, -2}}, Isa::kGeneric, &plan),
            "channels must not be negative, got -2");
  EXPECT_EQ(MakeConcatPlan({-1, 4, {8}}, Isa::kGeneric, &plan),
            "batch and spatial sizes must not be negative");
}

// The definition itself, by hand: the second input starts in lane 3.
TEST(ConcatRef, ByHand) {
  float a[16] = {1, 2, 3}, b[16] = {4, 5}, dst[16];
  for (float& x : dst) x = -1.f;
  const float* srcs[] = {a, b};
  ConcatRef({1, 1, {3, 2}}, srcs, dst);
  for (int lane = 0; lane < 16; ++lane) EXPECT_EQ(dst[lane], lane < 5 ? lane + 1.f : 0.f);
}

// Into a part of a wider tensor: the same bits, and nothing touched beside it.
TEST_P(ConcatOnEveryIsa, PartOfAWiderTensor) {
  for (int64_t pixels : {3, 1500}) {
    ConcatDesc desc{2, pixels, {20, 12, 32}};
    const int64_t image = 4 * pixels * 16, wide = 6 * pixels * 16, before = pixels * 16;
    GuardedBuffer a(2 * image / 2), b(image / 2), c(image), expected(2 * image), dst(2 * wide);
    FillSrc(20, pixels, 1.f, &a);
    FillSrc(12, pixels, 1e5f, &b);
    FillSrc(32, pixels, 3e5f, &c);
    dst.Fill(77.f);
    const float* srcs[] = {a.data(), b.data(), c.data()};
    ConcatRef(desc, srcs, expected.data());
    desc.dst_image_blocks = 6;
    ConcatPlan plan;
    ASSERT_EQ(MakeConcatPlan(desc, GetParam(), &plan), "");
    RunConcat(plan, srcs, dst.data() + before, pool_);
    for (int64_t i = 0; i < 2 * wide; ++i) {
      const int64_t at = i % wide - before;
      const bool beside = at < 0 || at >= image;
      ASSERT_EQ(dst[i], beside ? 77.f : expected[i / wide * image + at]) << i;
    }
  }
}

}  // namespace
}  // namespace bd
