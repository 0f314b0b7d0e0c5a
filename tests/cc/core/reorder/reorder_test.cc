#include "cc/core/reorder/reorder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "cc/base/threads/thread_pool.h"
#include "tests/cc/convert_ref.h"
#include "tests/cc/core/reorder/reorder_case.h"
#include "tests/cc/core/reorder/reorder_ref.h"
#include "tests/cc/layouts.h"

namespace bd {
namespace {

std::vector<DataType> AllDataTypes() {
  std::vector<DataType> types;
  for (int i = 0; i < kNumDataTypes; ++i) types.push_back(static_cast<DataType>(i));
  return types;
}

TensorDesc Strided(const Dims& dims, DataType dtype, const Dims& strides, int64_t offset) {
  TensorDesc desc;
  EXPECT_EQ(TensorDesc::Make(dims, dtype, std::nullopt, strides, offset, &desc), "");
  return desc;
}

TensorDesc Part(const TensorDesc& whole, const Dims& dims, const Dims& offsets) {
  TensorDesc part;
  EXPECT_EQ(whole.submemory(dims, offsets, &part), "");
  return part;
}

// Between channels last and blocks of 16, also of images that are apart, strips of pixels are
// taken, in every number of spatial dimensions.
TEST_P(Reorder, StripsOfImagesThatAreApart) {
  const std::pair<Layout, Layout> pairs[] = {{Layout::nwc, Layout::nCw16c},
                                             {Layout::nhwc, Layout::nChw16c},
                                             {Layout::ndhwc, Layout::nCdhw16c}};
  for (const auto& [plain, blocked] : pairs) {
    for (int64_t channels : {3, 16, 37}) {
      Dims dims = {3, channels};
      while (dims.size() < PartsOf(plain).rank) dims.push_back(dims.size() + 1);
      for (int64_t gap : {0, 32}) {
        const auto apart = [&](Layout layout) {
          const int64_t dense = TensorView(kF32, layout, dims).image_stride();
          return TensorView(kF32, layout, dims, dense + gap).desc();
        };
        for (const auto& [from, to] : {std::pair(plain, blocked), std::pair(blocked, plain)}) {
          ReorderDesc desc;
          desc.src = apart(from);
          desc.dst = apart(to);
          EXPECT_NE(Plan(desc).strip_kernel, nullptr) << Describe(desc);
          ExpectLikeReference(desc, SmallInteger);
          ExpectLikeReference(desc, SmallInteger, GuardedBuffer::kAtStart);
        }
      }
    }
  }
}

TEST_P(Reorder, EveryPairOfLayouts) {
  for (Layout src : AllLayouts()) {
    for (Layout dst : AllLayouts()) {
      if (strcmp(PartsOf(src).letters, PartsOf(dst).letters) != 0) continue;
      for (int seed = 0; seed < 4; ++seed) {
        const Dims dims = TestDims(src, seed);
        ExpectLikeReference({TensorDesc(dims, kF32, src), TensorDesc(dims, kF32, dst), {}, 0, 0},
                            SmallInteger);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(Reorder, EveryPairOfDataTypes) {
  const std::pair<Layout, Layout> kPairs[] = {{Layout::nhwc, Layout::nChw16c},
                                              {Layout::nChw16c, Layout::nChw8c},
                                              {Layout::nChw8c, Layout::nchw},
                                              {Layout::nchw, Layout::nhwc},
                                              {Layout::nhwc, Layout::nhwc}};
  const Dims dims = {2, 21, 5, 7};
  std::vector<float> channel_scales;
  for (int64_t c = 0; c < dims[kC]; ++c) channel_scales.push_back(0.25f * (c % 5) - 0.5f);
  for (const auto& [src_layout, dst_layout] : kPairs) {
    for (DataType src_type : AllDataTypes()) {
      for (DataType dst_type : AllDataTypes()) {
        ReorderDesc desc = {TensorDesc(dims, src_type, src_layout),
                            TensorDesc(dims, dst_type, dst_layout),
                            {},
                            0,
                            0};
        for (auto guard : {GuardedBuffer::kAtEnd, GuardedBuffer::kAtStart}) {
          ExpectLikeReference(desc, Extreme, guard);
        }
        desc.scales = {-0.375f};
        ExpectLikeReference(desc, Extreme);
        desc.scales = channel_scales;
        desc.scale_mask = 1 << kC;
        ExpectLikeReference(desc, SmallInteger);
        desc.beta = -1.5f;
        ExpectLikeReference(desc, SmallInteger);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(Reorder, ScalesOfEveryMask) {
  const Dims dims = {2, 17, 3, 4};
  for (int mask = 0; mask < 16; ++mask) {
    ReorderDesc desc = {TensorDesc(dims, kF32, Layout::nchw),
                        TensorDesc(dims, DataType::s32, Layout::nChw8c),
                        {},
                        mask,
                        0};
    int64_t scales = 1;
    for (int d = 0; d < 4; ++d) scales *= mask >> d & 1 ? dims[d] : 1;
    for (int64_t i = 0; i < scales; ++i) desc.scales.push_back(1.f + i);
    ExpectLikeReference(desc, SmallInteger);
  }
}

// Tails of every width, single pixels, tiles cut short, and sizes of several tasks.
TEST_P(Reorder, StripsWithinGuardPages) {
  std::vector<Dims> shapes = {
      {1, 3, 224, 224}, {2, 64, 56, 57}, {1, 1000, 9, 11}, {1, 1, 300, 301}};
  for (int64_t c = 1; c <= 50; ++c) shapes.push_back({2, c, 3, 5});
  for (int64_t c : {16, 24, 100, 512}) {
    for (const Dims& dims : {Dims{1, c, 1, 1}, Dims{3, c, 1, 1}, Dims{2, c, 7, 7}}) {
      shapes.push_back(dims);
    }
  }
  for (const Dims& dims : shapes) {
    const TensorDesc plain(dims, kF32, Layout::nhwc), blocked(dims, kF32, Layout::nChw16c);
    for (auto guard : {GuardedBuffer::kAtEnd, GuardedBuffer::kAtStart}) {
      ExpectLikeReference({plain, blocked, {}, 0, 0}, SmallInteger, guard);
      ExpectLikeReference({blocked, plain, {}, 0, 0}, SmallInteger, guard);
      if (HasFatalFailure()) return;
    }
  }
}

// Large enough for streaming stores; the odd address takes the cached ones.
TEST_P(Reorder, LargeStripsAtAnyAlignment) {
  for (int64_t channels : {64, 71}) {
    for (Layout dst_layout : {Layout::nhwc, Layout::nChw16c}) {
      const Dims dims = {2, channels, 251, 163};
      const Layout src_layout = dst_layout == Layout::nhwc ? Layout::nChw16c : Layout::nhwc;
      const ReorderDesc desc = {
          TensorDesc(dims, kF32, src_layout), TensorDesc(dims, kF32, dst_layout), {}, 0, 0};
      const ReorderPlan plan = Plan(desc);
      EXPECT_EQ(plan.streaming_kernel != nullptr, channels == 64 || dst_layout == Layout::nChw16c);
      GuardedBuffer src(desc.src.size()), expected(desc.dst.size());
      src.FillIntegers();
      ReorderRef(desc, src.data(), expected.data());
      for (int shift : {0, 1}) {
        GuardedBuffer dst(desc.dst.size() + shift, GuardedBuffer::kAtStart);
        RunReorder(plan, src.data(), dst.data() + shift, pool_);
        ASSERT_EQ(memcmp(dst.data() + shift, expected.data(), expected.size() * sizeof(float)), 0);
      }
    }
  }
}

// Sizes that are cut into pieces and tasks in each of the ways there are.
TEST_P(Reorder, ManyTasks) {
  for (const Dims& dims :
       {Dims{2, 100, 61, 67}, Dims{1, 3, 300, 301}, Dims{1, 700, 10, 70}, Dims{300, 300, 1, 2}}) {
    for (const auto& [src, dst] :
         std::vector<std::pair<Layout, Layout>>{{Layout::nhwc, Layout::nchw},
                                                {Layout::nchw, Layout::nChw16c},
                                                {Layout::nChw8c, Layout::nchw},
                                                {Layout::chwn, Layout::nhwc},
                                                {Layout::nchw, Layout::nchw}}) {
      const ReorderDesc desc = {TensorDesc(dims, kF32, src), TensorDesc(dims, kF32, dst), {}, 0, 0};
      EXPECT_GT(Plan(desc).tasks, 1);
      ExpectLikeReference(desc, SmallInteger);
      ExpectLikeReference(
          {TensorDesc(dims, DataType::s8, src), TensorDesc(dims, DataType::f16, dst), {0.5f}, 0, 0},
          SmallInteger);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(Reorder, OfTheSameMemoryIsACopy) {
  for (const auto& [src, dst, channels] :
       std::vector<std::tuple<Layout, Layout, int64_t>>{{Layout::nhwc, Layout::nhwc, 60},
                                                        {Layout::nChw16c, Layout::nChw16c, 64},
                                                        {Layout::nhwc, Layout::nChw16c, 64}}) {
    const int64_t side = src == dst ? 40 : 1;
    const Dims dims = {2000 / side, channels, side, 1};
    const ReorderDesc desc = {TensorDesc(dims, kF32, src), TensorDesc(dims, kF32, dst), {}, 0, 0};
    const ReorderPlan plan = Plan(desc);
    ASSERT_EQ(plan.nests.size(), 1u);
    EXPECT_EQ(plan.nests[0].cols.count, desc.src.size());
    ExpectLikeReference(desc, SmallInteger);
  }
}

// Garbage in the tail of src, NaN here, neither comes through nor stays.
TEST_P(Reorder, TailsBecomeZero) {
  const Dims dims = {2, 17, 2, 3};
  const TensorDesc desc(dims, kF32, Layout::nChw16c);
  Memory src(desc), dst(desc);
  Fill(desc, &src, SmallInteger);
  RunReorder(Plan({desc, desc, {}, 0, 0}), src.data(), dst.data(), pool_);
  const float* values = reinterpret_cast<const float*>(dst.data());
  ForIndices(desc.padded_dims(), [&](const Dims& i) {
    const float value = values[desc.OffsetOf(i.data())];
    ASSERT_EQ(i[kC] < 17 ? 0 : value, 0);
    ASSERT_FALSE(std::isnan(value));
  });
}

// Elements between those of dst keep their 0xff bytes: ReorderRef leaves them, too.
TEST_P(Reorder, PartsAndStrides) {
  const Dims dims = {1, 16, 3, 4};
  for (DataType type : {kF32, DataType::u8}) {
    std::vector<TensorDesc> descs = {
        TensorDesc(dims, type, Layout::nChw8c),
        Strided(dims, type, {1000, 60, 17, 2}, 5),
        Strided(dims, type, {0, 1, 100, 20}, 0),
    };
    for (Layout layout : {Layout::nchw, Layout::nhwc, Layout::nChw8c, Layout::nChw16c}) {
      descs.push_back(Part(TensorDesc({3, 48, 8, 9}, type, layout), dims, {1, 16, 2, 5}));
    }
    for (const TensorDesc& src : descs) {
      for (const TensorDesc& dst : descs) {
        ExpectLikeReference({src, dst, {}, 0, 0}, SmallInteger);
        ExpectLikeReference({src, dst, {2.f}, 0, 1.f}, SmallInteger);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(Reorder, SourceElementsMayShareMemory) {
  const Dims dims = {2, 5, 3, 4};
  const ReorderDesc desc = {
      Strided(dims, kF32, {0, 1, 0, 0}, 0), TensorDesc(dims, kF32, Layout::nchw), {}, 0, 0};
  Memory src(desc.src), dst(desc.dst);
  for (int c = 0; c < 5; ++c) StoreFloatRef(kF32, c, src.data(), c);
  RunReorder(Plan(desc), src.data(), dst.data(), pool_);
  ForIndices(dims, [&](const Dims& i) {
    ASSERT_EQ(LoadAsFloatRef(kF32, dst.data(), desc.dst.OffsetOf(i.data())), i[kC]);
  });
}

// int32 without scales is copied; through float it would lose digits.
TEST_P(Reorder, IntegersKeepEveryDigit) {
  const TensorDesc desc({3}, DataType::s32, Layout::x);
  const int32_t src[] = {2147483647, -2147483647, 16777217};
  int32_t dst[3], scaled[3];
  RunReorder(Plan({desc, desc, {}, 0, 0}), src, dst, pool_);
  EXPECT_EQ(memcmp(src, dst, sizeof(src)), 0);
  RunReorder(Plan({desc, desc, {1.f}, 0, 0}), src, scaled, pool_);
  EXPECT_EQ(scaled[0], 2147483647);
  EXPECT_EQ(scaled[1], INT32_MIN);
  EXPECT_EQ(scaled[2], 16777216);
}

TEST_P(Reorder, NothingToDoForEmptyTensors) {
  for (Layout src : {Layout::nhwc, Layout::nchw}) {
    for (int empty = 0; empty < 4; ++empty) {
      Dims dims = {2, 17, 3, 4};
      dims[empty] = 0;
      const ReorderPlan plan =
          Plan({TensorDesc(dims, kF32, src), TensorDesc(dims, kF32, Layout::nChw16c), {}, 0, 0});
      EXPECT_EQ(plan.tasks, 0);
      RunReorder(plan, nullptr, nullptr, pool_);
    }
  }
}

TEST(ReorderPlan, SmallTensorsAreOneTask) {
  for (Layout src : {Layout::nhwc, Layout::nchw}) {
    const Dims dims = {1, 1023, 7, 7};
    ReorderPlan plan;
    ASSERT_EQ(MakeReorderPlan(
                  {TensorDesc(dims, kF32, src), TensorDesc(dims, kF32, Layout::nChw16c), {}, 0, 0},
                  Isa::kGeneric, &plan),
              "");
    EXPECT_EQ(plan.tasks, 1);
  }
}

TEST(ReorderPlan, NamesWhatIsWrong) {
  const TensorDesc desc({2, 17, 3, 4}, kF32, Layout::nhwc);
  const auto error = [](const ReorderDesc& wrong) {
    ReorderPlan plan;
    return MakeReorderPlan(wrong, Isa::kGeneric, &plan);
  };
  EXPECT_EQ(error({desc, TensorDesc({2, 17, 4, 3}, kF32, Layout::nchw), {}, 0, 0}),
            "reorder needs equal dims; src has [2, 17, 3, 4], dst [2, 17, 4, 3]");
  EXPECT_EQ(error({desc, TensorDesc({2, 17}, kF32, Layout::nc), {}, 0, 0}),
            "reorder needs equal dims; src has [2, 17, 3, 4], dst [2, 17]");
  EXPECT_EQ(error({desc, Strided({2, 17, 3, 4}, kF32, {204, 0, 4, 1}, 0), {}, 0, 0}),
            "strides [204, 0, 4, 1] of dst, with dims [2, 17, 3, 4], let its elements overlap");
  EXPECT_EQ(error({desc, Strided({2, 17, 3, 4}, kF32, {204, 12, 3, 1}, 0), {}, 0, 0}),
            "strides [204, 12, 3, 1] of dst, with dims [2, 17, 3, 4], let its elements overlap");
  EXPECT_EQ(error({desc, desc, {1, 2, 3}, 1 << kC, 0}),
            "scale_mask 2 of dims [2, 17, 3, 4] asks for 17 scales; got 3");
  EXPECT_EQ(error({desc, desc, {1, 2}, 0, 0}),
            "scale_mask 0 of dims [2, 17, 3, 4] asks for 1 scales; got 2");
  EXPECT_EQ(error({desc, desc, {1}, 16, 0}),
            "scale_mask 16 names a dimension beyond the 4 of dims [2, 17, 3, 4]");
  const auto quantized = [&](DataType type, Quantization of_src, Quantization of_dst) {
    const TensorDesc typed({2, 17, 3, 4}, type, Layout::nhwc);
    return error({typed, typed, {}, 0, 0, of_src, of_dst});
  };
  EXPECT_EQ(quantized(kF32, {0.5f, 0}, {}),
            "the quantization of src is for int8 and uint8; src is float32");
  EXPECT_EQ(quantized(DataType::u8, {}, {-1.f, 0}),
            "the quantization of dst has scale -1.000000, not a positive number");
  EXPECT_EQ(quantized(DataType::u8, {}, {1.f, 256}),
            "the quantization of dst has zero point 256, which is no number of type uint8");
  EXPECT_EQ(quantized(DataType::s8, {1.f, -129}, {}),
            "the quantization of src has zero point -129, which is no number of type int8");
}

}  // namespace
}  // namespace bd
