#include "cc/core/reorder/reorder.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "cc/base/thread_pool.h"
#include "tests/cc/guarded_buffer.h"
#include "tests/cc/isas.h"

namespace bd {
namespace {

// Whole blocks, tails of every width, single pixels, tiles cut short, and sizes
// of several tasks.
std::vector<ReorderDesc> Shapes() {
  std::vector<ReorderDesc> shapes;
  auto add = [&](int64_t n, int64_t c, int64_t h, int64_t w) {
    ReorderDesc desc;
    desc.n = n;
    desc.channels = c;
    desc.h = h;
    desc.w = w;
    shapes.push_back(desc);
  };
  for (int64_t c = 1; c <= 50; ++c) add(2, c, 3, 5);
  for (int64_t c : {16, 24, 100, 512}) {
    add(1, c, 1, 1);
    add(3, c, 1, 1);
    add(2, c, 7, 7);
  }
  add(1, 3, 224, 224);
  add(2, 64, 56, 57);
  add(1, 1000, 9, 11);
  add(1, 1, 300, 301);
  return shapes;
}

std::string Describe(const ReorderDesc& d) {
  return std::string(LayoutName(d.src_layout)) + " to " + LayoutName(d.dst_layout) + " n" +
         std::to_string(d.n) + " c" + std::to_string(d.channels) + " h" + std::to_string(d.h) +
         " w" + std::to_string(d.w);
}

class Reorder : public testing::TestWithParam<Isa> {
 protected:
  ReorderPlan Plan(const ReorderDesc& desc) {
    ReorderPlan plan;
    EXPECT_EQ(MakeReorderPlan(desc, GetParam(), &plan), "");
    return plan;
  }
};
INSTANTIATE_TEST_SUITE_P(Isas, Reorder, testing::ValuesIn(TestIsas()),
                         [](const auto& info) { return std::string(IsaName(info.param)); });

// Bitwise the reference over guarded, NaN-filled memory; the tail of a blocked
// src holds NaN too, which must not come through.
TEST_P(Reorder, MatchesReferenceWithinGuardPages) {
  for (ReorderDesc desc : Shapes()) {
    for (Layout src_layout : {Layout::nhwc, Layout::nChw16c}) {
      for (Layout dst_layout : {Layout::nhwc, Layout::nChw16c}) {
        if (src_layout == dst_layout) continue;
        for (auto guard : {GuardedBuffer::kAtEnd, GuardedBuffer::kAtStart}) {
          desc.src_layout = src_layout;
          desc.dst_layout = dst_layout;
          SCOPED_TRACE(Describe(desc));
          const TensorDesc plain_desc({desc.n, desc.channels, desc.h, desc.w}, DataType::f32,
                                      Layout::nhwc);
          GuardedBuffer plain(plain_desc.size());
          for (size_t i = 0; i < plain.size(); ++i) plain[i] = static_cast<float>(i + 1);
          GuardedBuffer src(desc.src().size(), guard);
          for (int64_t n = 0; n < desc.n; ++n)
            for (int64_t c = 0; c < desc.channels; ++c)
              for (int64_t h = 0; h < desc.h; ++h)
                for (int64_t w = 0; w < desc.w; ++w)
                  src[desc.src().offset(n, c, h, w)] = plain[plain_desc.offset(n, c, h, w)];

          GuardedBuffer dst(desc.dst().size(), guard), expected(desc.dst().size());
          ThreadPool pool(3);
          RunReorder(Plan(desc), src.data(), dst.data(), pool);
          ReorderRef(desc.src(), src.data(), desc.dst(), expected.data());
          for (size_t i = 0; i < dst.size(); ++i) ASSERT_EQ(dst[i], expected[i]) << "at " << i;
        }
      }
    }
  }
}

TEST_P(Reorder, ThereAndBackIsTheIdentity) {
  ThreadPool pool(2);
  for (ReorderDesc there : Shapes()) {
    ReorderDesc back = there;
    back.src_layout = there.dst_layout;
    back.dst_layout = there.src_layout;
    SCOPED_TRACE(Describe(there));
    GuardedBuffer src(there.src().size()), blocked(there.dst().size()), dst(there.src().size());
    src.FillIntegers(there.channels);
    RunReorder(Plan(there), src.data(), blocked.data(), pool);
    RunReorder(Plan(back), blocked.data(), dst.data(), pool);
    ASSERT_EQ(memcmp(src.data(), dst.data(), src.size() * sizeof(float)), 0);
  }
}

// Large enough for streaming stores; the odd address takes the cached ones.
TEST_P(Reorder, LargeTensorsMatchReferenceAtAnyAlignment) {
  ThreadPool pool(2);
  for (int64_t channels : {64, 71}) {
    for (Layout dst_layout : {Layout::nhwc, Layout::nChw16c}) {
      ReorderDesc desc;
      desc.dst_layout = dst_layout;
      desc.src_layout = dst_layout == Layout::nhwc ? Layout::nChw16c : Layout::nhwc;
      desc.n = 2, desc.channels = channels, desc.h = 251, desc.w = 163;
      SCOPED_TRACE(Describe(desc));
      const ReorderPlan plan = Plan(desc);
      EXPECT_EQ(plan.streaming_kernel != nullptr, channels == 64 || dst_layout == Layout::nChw16c);
      GuardedBuffer src(desc.src().size()), expected(desc.dst().size());
      src.FillIntegers();
      ReorderRef(desc.src(), src.data(), desc.dst(), expected.data());
      for (int shift : {0, 1}) {
        GuardedBuffer dst(desc.dst().size() + shift, GuardedBuffer::kAtStart);
        RunReorder(plan, src.data(), dst.data() + shift, pool);
        ASSERT_EQ(memcmp(dst.data() + shift, expected.data(), expected.size() * sizeof(float)), 0);
      }
    }
  }
}

TEST_P(Reorder, EqualLayoutsCopy) {
  ThreadPool pool(2);
  for (Layout layout : {Layout::nhwc, Layout::nChw16c}) {
    ReorderDesc desc;
    desc.src_layout = desc.dst_layout = layout;
    desc.n = 2, desc.channels = 60, desc.h = 40, desc.w = 33;
    GuardedBuffer src(desc.src().size()), dst(desc.dst().size());
    src.FillIntegers();
    RunReorder(Plan(desc), src.data(), dst.data(), pool);
    EXPECT_EQ(memcmp(src.data(), dst.data(), src.size() * sizeof(float)), 0);
  }
}

TEST_P(Reorder, NothingToDoForEmptyTensors) {
  ThreadPool pool(2);
  for (int empty = 0; empty < 4; ++empty) {
    ReorderDesc desc;
    desc.n = empty == 0 ? 0 : 2;
    desc.channels = empty == 1 ? 0 : 17;
    desc.h = empty == 2 ? 0 : 3;
    desc.w = empty == 3 ? 0 : 4;
    const ReorderPlan plan = Plan(desc);
    EXPECT_EQ(plan.tasks, 0);
    RunReorder(plan, nullptr, nullptr, pool);
  }
}

TEST(ReorderPlan, SmallTensorsAreOneTask) {
  ReorderDesc desc;
  desc.n = 1, desc.channels = 1024, desc.h = desc.w = 7;
  ReorderPlan plan;
  ASSERT_EQ(MakeReorderPlan(desc, Isa::kGeneric, &plan), "");
  EXPECT_EQ(plan.tasks, 1);
}

TEST(ReorderPlan, NamesWhatIsWrong) {
  ReorderPlan plan;
  ReorderDesc desc;
  desc.dst_layout = Layout::nChw8c;
  EXPECT_EQ(MakeReorderPlan(desc, Isa::kGeneric, &plan),
            "reorder supports nhwc and nChw16c, not nChw8c");
  desc.dst_layout = Layout::nhwc;
  desc.h = -1;
  EXPECT_EQ(MakeReorderPlan(desc, Isa::kGeneric, &plan),
            "reorder of a tensor with a negative size");
}

TEST(ReorderRef, KnowsEveryLayout) {
  const Dims dims = {2, 19, 3, 4};
  const std::vector<Layout> layouts = {Layout::nhwc, Layout::nchw, Layout::chwn, Layout::nChw8c,
                                       Layout::nChw16c};
  const TensorDesc nchw(dims, DataType::f32, Layout::nchw);
  GuardedBuffer src(nchw.size());
  for (size_t i = 0; i < src.size(); ++i) src[i] = static_cast<float>(i + 1);
  for (Layout layout : layouts) {
    const TensorDesc desc(dims, DataType::f32, layout);
    GuardedBuffer there(desc.size()), back(nchw.size());
    ReorderRef(nchw, src.data(), desc, there.data());
    ReorderRef(desc, there.data(), nchw, back.data());
    EXPECT_EQ(memcmp(src.data(), back.data(), src.size() * sizeof(float)), 0) << LayoutName(layout);
    double sum = 0;
    for (float x : there) sum += x;  // a NaN here is an unwritten tail
    EXPECT_EQ(sum, 0.5 * src.size() * (src.size() + 1));
  }
}

}  // namespace
}  // namespace bd
