#include "cc/core/concat/concat.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/cc/core/concat/concat_ref.h"
#include "tests/cc/guarded_buffer.h"
#include "tests/cc/isas.h"
#include "tests/cc/layouts.h"
#include "tests/cc/typed_tensor.h"

namespace bd {
namespace {

// As columns of pixels.
ConcatDesc Desc(int64_t n, int64_t pixels, const std::vector<int64_t>& channels) {
  ConcatDesc desc;
  int64_t sum = 0;
  for (int64_t c : channels) {
    desc.srcs.emplace_back(DataType::f32, Layout::nChw16c, Dims{n, c, pixels, 1});
    sum += c;
  }
  desc.dst = TensorView(DataType::f32, Layout::nChw16c, {n, sum, pixels, 1});
  return desc;
}

// A different value for every logical element, zeros in the tail.
void FillSrc(const TensorView& view, float first, GuardedBuffer* src) {
  for (size_t i = 0; i < src->size(); ++i) (*src)[i] = first + static_cast<float>(i);
  ClearTails(view, src->data());
}

void Check(const ConcatDesc& desc, Isa isa, ThreadPool& pool, GuardedBuffer::Guard guard) {
  SCOPED_TRACE(testing::Message() << IsaName(isa) << " to " << desc.dst.ToString());
  ConcatPlan plan;
  ASSERT_EQ(MakeConcatPlan(desc, isa, &plan), "");
  std::vector<std::unique_ptr<GuardedBuffer>> buffers;
  std::vector<const float*> srcs;
  float first = 1.f;
  for (const TensorView& src : desc.srcs) {
    SCOPED_TRACE(src.ToString());
    buffers.push_back(std::make_unique<GuardedBuffer>(src.elements(), guard));
    FillSrc(src, first, buffers.back().get());
    first += static_cast<float>(buffers.back()->size());
    srcs.push_back(buffers.back()->data());
  }
  const int64_t size = desc.dst.elements();
  GuardedBuffer expected(size), dst(size, guard);
  expected.Fill(-1.f);  // between the images of a part
  dst.Fill(-1.f);
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

INSTANTIATE_TEST_SUITE_P(Isas, ConcatOnEveryIsa, testing::ValuesIn(TestIsas()), IsaParam);

TEST_P(ConcatOnEveryIsa, WholeBlocksAreCopied) {
  for (int64_t n : {1, 3}) {
    for (int64_t pixels : {1, 9}) {
      CheckBothEnds(Desc(n, pixels, {16, 32}));
      CheckBothEnds(Desc(n, pixels, {48}));
      CheckBothEnds(Desc(n, pixels, {32, 16, 5}));  // the last may have a tail
    }
  }
}

// Every shift, of an input of one block and of several.
TEST_P(ConcatOnEveryIsa, EveryShift) {
  for (int64_t first = 1; first < 16; ++first) {
    for (int64_t pixels : {1, 2, 5}) {
      CheckBothEnds(Desc(2, pixels, {first, 16}));
      CheckBothEnds(Desc(1, pixels, {first, 40, 16 + first}));
      CheckBothEnds(Desc(1, pixels, {16 + first, first}));
    }
  }
}

TEST_P(ConcatOnEveryIsa, ManyInputsInOneBlock) {
  CheckBothEnds(Desc(1, 6, {1, 1, 1, 1, 1}));
  CheckBothEnds(Desc(2, 3, std::vector<int64_t>(20, 1)));
  CheckBothEnds(Desc(2, 3, {3, 2, 0, 7, 1, 9, 58, 24}));
}

// Slices that begin and end at any channel, and values of which some channels are joined.
TEST_P(ConcatOnEveryIsa, RangesOfChannels) {
  const auto cut = [](int64_t pixels, int64_t channels, const std::vector<ChannelRange>& ranges) {
    ConcatDesc desc = Desc(2, pixels, std::vector<int64_t>(ranges.size(), channels));
    int64_t sum = 0;
    for (const ChannelRange& range : ranges) sum += range.count;
    desc.dst = TensorView(DataType::f32, Layout::nChw16c, {2, sum, pixels, 1});
    desc.ranges = ranges;
    return desc;
  };
  for (int64_t pixels : {1, 3}) {
    for (int64_t first = 0; first < 17; ++first) {
      for (int64_t count : {0, 1, 5, 16, 23}) CheckBothEnds(cut(pixels, 40, {{first, count}}));
    }
    CheckBothEnds(cut(pixels, 32, {{0, 10}, {10, 22}}));
    CheckBothEnds(cut(pixels, 37, {{20, 17}, {0, 20}, {36, 1}}));
  }
}

// Other types, each input with a scale of its own: the bits that reorders to float32 and back give
// around the work on float32.
TEST_P(ConcatOnEveryIsa, OfEveryType) {
  const Quantization half = {0.5f, 3}, quarter = {0.25f, 100}, same = {0.5f, 3};
  for (DataType dtype : {DataType::bf16, DataType::u8, DataType::s8}) {
    for (const std::vector<int64_t>& channels :
         {std::vector<int64_t>{16, 32, 5}, {3, 20, 0, 17}, {21}, {1, 1, 1}}) {
      for (int64_t pixels : {1, 300}) {
        const ConcatDesc f32 = Desc(2, pixels, channels);
        ConcatDesc desc = f32;
        const bool scaled = dtype != DataType::bf16;
        if (scaled) desc.dst_quantization = half;
        std::vector<std::unique_ptr<TypedTensor>> srcs;
        std::vector<const float*> floats, typed;
        for (size_t i = 0; i < channels.size(); ++i) {
          const Quantization of = !scaled ? Quantization() : i % 2 == 0 ? same : quarter;
          desc.src_quantizations.push_back(of);
          srcs.push_back(std::make_unique<TypedTensor>(f32.srcs[i], ElementType{dtype, of},
                                                       GetParam(), pool_));
          desc.srcs[i] = srcs.back()->view();
          floats.push_back(srcs.back()->floats());
          typed.push_back(srcs.back()->as_floats());
        }
        TypedTensor dst(f32.dst, {dtype, desc.dst_quantization}, GetParam(), pool_);
        desc.dst = dst.view();
        ConcatPlan plain, plan;
        ASSERT_EQ(MakeConcatPlan(f32, GetParam(), &plain), "");
        ASSERT_EQ(MakeConcatPlan(desc, GetParam(), &plan), "");
        RunConcat(plain, floats.data(), dst.floats(), pool_);
        dst.Expect();
        RunConcat(plan, typed.data(), dst.data(), pool_);
        EXPECT_EQ(dst.Difference(), -1) << desc.dst.ToString() << " of " << channels.size();
      }
    }
  }
}

TEST_P(ConcatOnEveryIsa, EmptyTensors) {
  CheckBothEnds(Desc(0, 4, {3, 20}));
  CheckBothEnds(Desc(2, 0, {3, 20}));
  CheckBothEnds(Desc(2, 4, {0, 0}));
  CheckBothEnds(Desc(2, 4, {0, 17, 0}));
}

// Planes cut into chunks, and many tasks.
TEST_P(ConcatOnEveryIsa, LargePlanes) {
  for (const auto& channels : std::vector<std::vector<int64_t>>{{32, 16}, {20, 13, 30}}) {
    const ConcatDesc desc = Desc(2, 2500, channels);
    ConcatPlan plan;
    ASSERT_EQ(MakeConcatPlan(desc, GetParam(), &plan), "");
    ASSERT_GT(plan.tasks, 3);
    ASSERT_GT(plan.chunks, 1);
    CheckBothEnds(desc);
  }
}

TEST(ConcatPlan, NamesWhatIsWrong) {
  const auto error_with = [](auto change) {
    ConcatDesc desc = Desc(2, 4, {8, 20});
    change(&desc);
    ConcatPlan plan;
    return MakeConcatPlan(desc, Isa::kGeneric, &plan);
  };
  const auto view = [](DataType dtype, Layout layout, const Dims& dims) {
    return TensorView(dtype, layout, dims);
  };
  EXPECT_EQ(error_with([](ConcatDesc* d) { d->srcs.clear(); }), "concat needs at least one input");
  EXPECT_EQ(error_with([](ConcatDesc* d) {
              d->ranges = {{0, 8}};
            }),
            "1 ranges of channels for 2 inputs");
  EXPECT_EQ(error_with([](ConcatDesc* d) {
              d->ranges = {{0, 8}, {1, 20}};
            }),
            "channels from 1 on, 20 of them, are not all in float32 nChw16c [2, 20, 4, 1]");
  EXPECT_EQ(error_with([](ConcatDesc* d) { d->srcs.pop_back(); }),
            "inputs of 8 channels do not make float32 nChw16c [2, 28, 4, 1]");
  EXPECT_EQ(error_with([&](ConcatDesc* d) {
              d->srcs[0] = view(DataType::f32, Layout::nChw16c, {2, 8, 5, 1});
            }),
            "float32 nChw16c [2, 8, 5, 1] does not fit into float32 nChw16c [2, 28, 4, 1]");
  EXPECT_EQ(error_with([&](ConcatDesc* d) {
              d->srcs[1] = view(DataType::bf16, Layout::nChw16c, {2, 20, 4, 1});
            }),
            "bfloat16 nChw16c [2, 20, 4, 1] does not fit into float32 nChw16c [2, 28, 4, 1]");
  EXPECT_EQ(error_with([&](ConcatDesc* d) {
              d->dst = view(DataType::f32, Layout::nhwc, {2, 28, 4, 1});
            }),
            "concat joins blocks of 16 channels, got float32 nhwc [2, 28, 4, 1]");
}

// The definition itself, by hand: the second input starts in lane 3.
TEST(ConcatRef, ByHand) {
  float a[16] = {1, 2, 3}, b[16] = {4, 5}, dst[16];
  for (float& x : dst) x = -1.f;
  const float* srcs[] = {a, b};
  ConcatRef(Desc(1, 1, {3, 2}), srcs, dst);
  for (int lane = 0; lane < 16; ++lane) EXPECT_EQ(dst[lane], lane < 5 ? lane + 1.f : 0.f);
}

// From and into parts of wider tensors.
TEST_P(ConcatOnEveryIsa, PartsOfWiderTensors) {
  const auto part = [](const TensorView& view, int64_t blocks) {
    return TensorView(DataType::f32, Layout::nChw16c, view.dims(), blocks * view.block_stride());
  };
  for (int64_t pixels : {3, 1500}) {
    ConcatDesc desc = Desc(2, pixels, {20, 12, 32});
    desc.srcs[2] = part(desc.srcs[2], 3);
    desc.dst = part(desc.dst, 6);
    CheckBothEnds(desc);
  }
}

}  // namespace
}  // namespace bd
