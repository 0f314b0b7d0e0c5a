#include "cc/layout/tensor_desc.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/cc/layouts.h"

namespace bd {
namespace {

constexpr DataType kF32 = DataType::f32;
constexpr int64_t kLargest = INT64_MAX;

TensorDesc Strided(const Dims& dims, const Dims& strides, int64_t offset = 0) {
  TensorDesc desc;
  EXPECT_EQ(TensorDesc::Make(dims, kF32, std::nullopt, strides, offset, &desc), "");
  return desc;
}

std::string Error(const Dims& dims, std::optional<Layout> layout, const Dims& strides = {},
                  int64_t offset = 0) {
  TensorDesc desc;
  return TensorDesc::Make(dims, kF32, layout, strides, offset, &desc);
}

TEST(TensorDesc, StridesOfPlainLayouts) {
  const Dims dims = {2, 3, 5, 7};
  EXPECT_EQ(TensorDesc(dims, kF32, Layout::nchw).strides(), Dims({3 * 5 * 7, 5 * 7, 7, 1}));
  EXPECT_EQ(TensorDesc(dims, kF32, Layout::nhwc).strides(), Dims({5 * 7 * 3, 1, 7 * 3, 3}));
  EXPECT_EQ(TensorDesc(dims, kF32, Layout::chwn).strides(), Dims({1, 5 * 7 * 2, 7 * 2, 2}));
  EXPECT_EQ(TensorDesc({3, 8, 4, 1, 2}, kF32, Layout::hwigo).strides(),
            Dims({8, 1, 3 * 8, 2 * 4 * 3 * 8, 4 * 3 * 8}));
}

TEST(TensorDesc, OffsetsOfBlockedActivations) {
  for (int64_t b : {8, 16}) {
    const int64_t C = 17, Cp = (C + b - 1) / b * b, H = 5, W = 4;
    const TensorDesc desc({2, C, H, W}, kF32, b == 8 ? Layout::nChw8c : Layout::nChw16c);
    ForIndices(desc.dims(), [&](const Dims& i) {
      const int64_t n = i[0], c = i[1], h = i[2], w = i[3];
      ASSERT_EQ(desc.offset(n, c, h, w),
                n * Cp * H * W + (c / b) * H * W * b + h * W * b + w * b + c % b);
    });
  }
}

TEST(TensorDesc, OffsetsOfBlockedWeights) {
  const int64_t G = 3, O = 17, I = 9, H = 2, W = 3;
  const int64_t Op = 24, Ip = 16;
  const TensorDesc desc({G, O, I, H, W}, kF32, Layout::gOIhw8i8o);
  ForIndices(desc.dims(), [&](const Dims& x) {
    const int64_t g = x[0], o = x[1], i = x[2], h = x[3], w = x[4];
    ASSERT_EQ(
        desc.offset(g, o, i, h, w),
        ((((g * (Op / 8) + o / 8) * (Ip / 8) + i / 8) * H + h) * W + w) * 64 + i % 8 * 8 + o % 8);
  });
  const TensorDesc depthwise({G * 7, 1, 1, H, W}, kF32, Layout::Goihw16g);
  ForIndices(depthwise.dims(), [&](const Dims& x) {
    ASSERT_EQ(depthwise.OffsetOf(x.data()), ((x[0] / 16 * H + x[3]) * W + x[4]) * 16 + x[0] % 16);
  });
}

// 17 channels in blocks of 8 store 24, the last 7 of them the tail.
TEST(TensorDesc, SizesIncludeTheTail) {
  const TensorDesc desc({2, 17, 5, 4}, DataType::bf16, Layout::nChw8c);
  EXPECT_EQ(desc.padded_dims(), Dims({2, 24, 5, 4}));
  EXPECT_EQ(desc.size(), 2 * 24 * 5 * 4);
  EXPECT_EQ(desc.size_bytes(), 2 * desc.size());
  EXPECT_EQ(TensorDesc({2, 17, 5, 4}, kF32, Layout::nChw16c).size(), 2 * 32 * 5 * 4);
  EXPECT_EQ(TensorDesc({2, 17, 5, 4}, kF32, Layout::nhwc).size(), 2 * 17 * 5 * 4);
}

TEST(TensorDesc, OffsetIsABijectionOntoThePaddedElements) {
  for (Layout layout : AllLayouts()) {
    for (int seed = 0; seed < 4; ++seed) {
      const TensorDesc desc(TestDims(layout, seed), kF32, layout);
      SCOPED_TRACE(desc.ToString());
      std::vector<int> hits(desc.size(), 0);
      ForIndices(desc.padded_dims(), [&](const Dims& i) { ++hits.at(desc.OffsetOf(i.data())); });
      EXPECT_EQ(hits, std::vector<int>(hits.size(), 1));
      EXPECT_TRUE(desc.is_dense());
      EXPECT_TRUE(desc.is_whole());
      EXPECT_EQ(desc.layout(), layout);
      int64_t elements = 1;
      for (int64_t size : desc.shape()) elements *= size;
      EXPECT_EQ(elements, desc.size());
    }
  }
}

TEST(TensorDesc, ZeroSizes) {
  for (Layout layout : AllLayouts()) {
    for (int d = 0; d < PartsOf(layout).rank; ++d) {
      Dims dims = TestDims(layout);
      dims[d] = 0;
      const TensorDesc desc(dims, kF32, layout);
      EXPECT_EQ(desc.size(), 0);
      EXPECT_TRUE(desc.is_dense());
    }
  }
  EXPECT_EQ(Strided({2, 0}, {1, 5}, 100).size(), 0);
}

// Rows of 5 values, 8 apart: a padded leading dimension.
TEST(TensorDesc, PaddedLeadingDimension) {
  const TensorDesc desc = Strided({3, 5}, {8, 1}, 2);
  EXPECT_EQ(desc.offset(2, 4), 2 + 2 * 8 + 4);
  EXPECT_EQ(desc.size(), 2 + 2 * 8 + 5);
  EXPECT_FALSE(desc.is_dense());
  EXPECT_FALSE(desc.layout().has_value());
  EXPECT_EQ(desc.shape(), Dims({desc.size()}));
  EXPECT_TRUE(Strided({3, 5}, {5, 1}).is_dense());
}

TEST(TensorDesc, TheLayoutsOwnStridesChangeNothing) {
  const TensorDesc desc({2, 17, 5, 4}, kF32, Layout::nChw8c);
  TensorDesc same, spread;
  ASSERT_EQ(TensorDesc::Make(desc.dims(), kF32, Layout::nChw8c, desc.strides(), 0, &same), "");
  EXPECT_EQ(same, desc);
  EXPECT_TRUE(same.is_whole());
  ASSERT_EQ(TensorDesc::Make(desc.dims(), kF32, Layout::nChw8c, {480, 160, 32, 10}, 0, &spread),
            "");
  EXPECT_NE(spread, desc);
  EXPECT_FALSE(spread.is_whole());
  EXPECT_EQ(spread.offset(0, 9, 0, 1), 160 + 10 + 1);
}

TEST(TensorDesc, PartsShareTheMemory) {
  for (Layout layout : {Layout::nhwc, Layout::nchw, Layout::nChw8c, Layout::nChw16c}) {
    const TensorDesc whole({2, 40, 8, 10}, kF32, layout);
    SCOPED_TRACE(whole.ToString());
    for (const auto& [dims, offsets] :
         std::vector<std::pair<Dims, Dims>>{{{1, 16, 2, 4}, {1, 16, 3, 5}},
                                            {{2, 24, 8, 10}, {0, 16, 0, 0}},
                                            {{2, 40, 8, 10}, {0, 0, 0, 0}},
                                            {{0, 16, 2, 4}, {1, 16, 3, 5}}}) {
      TensorDesc part;
      ASSERT_EQ(whole.submemory(dims, offsets, &part), "");
      EXPECT_EQ(part.strides(), whole.strides());
      EXPECT_EQ(part.is_whole(), dims == whole.dims());
      EXPECT_LE(part.size(), whole.size());
      ForIndices(dims, [&, &offsets = offsets](const Dims& i) {
        ASSERT_EQ(part.OffsetOf(i.data()), whole.offset(offsets[0] + i[0], offsets[1] + i[1],
                                                        offsets[2] + i[2], offsets[3] + i[3]));
      });
    }
  }
}

// The channels from 8 on of 17 in blocks of 8: the part has the tail of the whole.
TEST(TensorDesc, PartsMayEndWithTheTail) {
  const TensorDesc whole({1, 17, 2, 2}, kF32, Layout::nChw8c);
  TensorDesc part;
  ASSERT_EQ(whole.submemory({1, 9, 2, 2}, {0, 8, 0, 0}, &part), "");
  EXPECT_EQ(part.padded_dims(), Dims({1, 16, 2, 2}));
  EXPECT_EQ(part.size(), whole.size());
}

TEST(TensorDesc, PartsOfPartsAddUp) {
  const TensorDesc whole({4, 6, 7, 8}, kF32, Layout::nchw);
  TensorDesc part, inner, direct;
  ASSERT_EQ(whole.submemory({3, 4, 5, 6}, {1, 1, 1, 1}, &part), "");
  ASSERT_EQ(part.submemory({1, 2, 2, 2}, {2, 1, 0, 3}, &inner), "");
  ASSERT_EQ(whole.submemory({1, 2, 2, 2}, {3, 2, 1, 4}, &direct), "");
  EXPECT_EQ(inner, direct);
}

TEST(TensorDesc, BadPartsAreNamed) {
  const TensorDesc whole({2, 17, 5, 4}, kF32, Layout::nChw8c);
  const auto error = [&](const Dims& dims, const Dims& offsets) {
    TensorDesc part;
    return whole.submemory(dims, offsets, &part);
  };
  EXPECT_EQ(error({1, 8, 1}, {0, 0, 0, 0}),
            "submemory: dims must be one number for each of the 4 dimensions; got [1, 8, 1]");
  EXPECT_EQ(error({1, 8, 1, 1}, {0, 0, 0, 0, 0}),
            "submemory: offsets must be one number for each of the 4 dimensions; got "
            "[0, 0, 0, 0, 0]");
  EXPECT_EQ(error({1, -8, 1, 1}, {0, 0, 0, 0}),
            "submemory: dims must not be negative; got [1, -8, 1, 1]");
  EXPECT_EQ(error({1, 8, 1, 1}, {0, 0, -1, 0}),
            "submemory: offsets must not be negative; got [0, 0, -1, 0]");
  EXPECT_EQ(error({1, 8, 5, 1}, {0, 0, 1, 0}),
            "submemory: 1 + 5 elements of dimension 2 reach beyond its 5");
  EXPECT_EQ(error({1, 8, kLargest, 1}, {0, 0, kLargest, 0}),
            "submemory: 9223372036854775807 + 9223372036854775807 elements of dimension 2 reach "
            "beyond its 5");
  const std::string rule =
      " elements of dimension 1 cut a block: it must start and end at a multiple of 8, or end "
      "with the dimension, 17";
  EXPECT_EQ(error({1, 8, 1, 1}, {0, 4, 0, 0}), "submemory: 4 + 8" + rule);
  EXPECT_EQ(error({1, 12, 1, 1}, {0, 0, 0, 0}), "submemory: 0 + 12" + rule);
}

TEST(TensorDesc, BadArgumentsAreNamed) {
  EXPECT_EQ(Error({2, 3}, std::nullopt), "a tensor needs a layout, or strides");
  EXPECT_EQ(Error({2, 3}, Layout::nchw),
            "layout nchw has 4 dimensions, n, c, h, w; got dims [2, 3]");
  EXPECT_EQ(Error({2, 3}, Layout::x), "layout x has 1 dimension, x; got dims [2, 3]");
  EXPECT_EQ(Error({1, 1, 1, 1, 1, 1, 1}, std::nullopt, {1, 1, 1, 1, 1, 1, 1}),
            "a tensor has 1 to 6 dimensions; got dims [1, 1, 1, 1, 1, 1, 1]");
  EXPECT_EQ(Error({2, -3}, Layout::nc), "dims must not be negative; got [2, -3]");
  EXPECT_EQ(Error({2, 3}, std::nullopt, {3}),
            "strides must be one number for each of the 2 dimensions; got [3]");
  EXPECT_EQ(Error({2, 3}, std::nullopt, {3, -1}), "strides must not be negative; got [3, -1]");
  EXPECT_EQ(Error({2, 3}, Layout::nc, {}, -1), "offset must not be negative; got -1");
}

TEST(TensorDesc, SizesThatOverflowAreNamed) {
  const int64_t half = int64_t{1} << 62;
  const auto too_large = [](const Dims& dims) {
    return "a tensor of dims " + dims.ToString() + " is too large: its size exceeds 2^47 bytes";
  };
  for (const Dims& dims : {Dims{half, 2}, Dims{1, half}, Dims{int64_t{1} << 32, int64_t{1} << 32},
                           Dims{1, kLargest}, Dims{0, half, 8}}) {
    const Layout layout = dims.size() == 2 ? Layout::nC16c : Layout::ncw;
    EXPECT_EQ(Error(dims, layout), too_large(dims));
  }
  EXPECT_EQ(Error({3, 2}, std::nullopt, {half, 1}), too_large({3, 2}));
  EXPECT_EQ(Error({2, 2}, std::nullopt, {2, 1}, kLargest), too_large({2, 2}));
  EXPECT_EQ(Error({0, 3}, std::nullopt, {1, half}), too_large({0, 3}));
  EXPECT_EQ(Error({int64_t{1} << 32, int64_t{1} << 32}, std::nullopt, {0, 0}),
            too_large({int64_t{1} << 32, int64_t{1} << 32}));
}

TEST(TensorDesc, PrintsWhatItIsMadeOf) {
  const TensorDesc desc({2, 17, 5, 4}, kF32, Layout::nChw8c);
  EXPECT_EQ(desc.ToString(), "float32 nChw8c [2, 17, 5, 4]");
  TensorDesc part;
  ASSERT_EQ(desc.submemory({1, 8, 5, 4}, {1, 8, 0, 0}, &part), "");
  EXPECT_EQ(part.ToString(), "float32 nChw8c [1, 8, 5, 4] strides [480, 160, 32, 8] offset 640");
  EXPECT_EQ(Strided({3, 5}, {8, 1}).ToString(), "float32 [3, 5] strides [8, 1]");
}

}  // namespace
}  // namespace bd
