#include "cc/layout/layout.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace bd {
namespace {

#define BD_LAYOUT_VALUE(name) Layout::name,
const std::vector<Layout> kAllLayouts = {BD_LAYOUTS(BD_LAYOUT_VALUE)};

const std::vector<Dims> kShapes = {
    {1, 1, 1, 1}, {2, 16, 5, 4}, {2, 17, 5, 4}, {3, 8, 1, 7}, {1, 33, 2, 3}, {2, 5, 3, 1},
};

TEST(Layout, NamesRoundTrip) {
  for (Layout layout : kAllLayouts) {
    Layout parsed = layout == Layout::nhwc ? Layout::nchw : Layout::nhwc;
    EXPECT_TRUE(ParseLayout(LayoutName(layout), &parsed));
    EXPECT_EQ(parsed, layout);
  }
  EXPECT_STREQ(LayoutName(Layout::nChw16c), "nChw16c");
}

TEST(Layout, UnknownNamesAreRefused) {
  for (const std::string name : {"", "NHWC", "nchw16c", "nChw16", "nChw16cc", "nhwc "}) {
    Layout layout = Layout::chwn;
    EXPECT_FALSE(ParseLayout(name, &layout)) << name;
    EXPECT_EQ(layout, Layout::chwn);
  }
}

TEST(Layout, ChannelBlocks) {
  EXPECT_EQ(ChannelBlock(Layout::nhwc), 1);
  EXPECT_EQ(ChannelBlock(Layout::nchw), 1);
  EXPECT_EQ(ChannelBlock(Layout::chwn), 1);
  EXPECT_EQ(ChannelBlock(Layout::nChw8c), 8);
  EXPECT_EQ(ChannelBlock(Layout::nChw16c), 16);
}

TEST(TensorDesc, StridesOfPlainLayouts) {
  const Dims dims = {2, 3, 5, 7};
  EXPECT_EQ(TensorDesc(dims, Layout::nchw).strides(), (Dims{3 * 5 * 7, 5 * 7, 7, 1}));
  EXPECT_EQ(TensorDesc(dims, Layout::nhwc).strides(), (Dims{5 * 7 * 3, 1, 7 * 3, 3}));
  EXPECT_EQ(TensorDesc(dims, Layout::chwn).strides(), (Dims{1, 5 * 7 * 2, 7 * 2, 2}));
}

TEST(TensorDesc, OffsetsOfBlockedLayouts) {
  for (int64_t b : {8, 16}) {
    const int64_t C = 17, Cp = (C + b - 1) / b * b, H = 5, W = 4;
    const TensorDesc desc({2, C, H, W}, b == 8 ? Layout::nChw8c : Layout::nChw16c);
    for (int64_t n = 0; n < 2; ++n)
      for (int64_t c = 0; c < C; ++c)
        for (int64_t h = 0; h < H; ++h)
          for (int64_t w = 0; w < W; ++w)
            ASSERT_EQ(desc.offset(n, c, h, w),
                      n * Cp * H * W + (c / b) * H * W * b + h * W * b + w * b + c % b);
  }
}

// 17 channels in blocks of 8 store 24, the last 7 of them the tail.
TEST(TensorDesc, SizesIncludeTheTail) {
  const TensorDesc desc({2, 17, 5, 4}, Layout::nChw8c);
  EXPECT_EQ(desc.padded_dims(), (Dims{2, 24, 5, 4}));
  EXPECT_EQ(desc.size(), 2 * 24 * 5 * 4);
  EXPECT_EQ(desc.size_bytes(4), 4 * desc.size());
  EXPECT_EQ(TensorDesc({2, 17, 5, 4}, Layout::nChw16c).size(), 2 * 32 * 5 * 4);
  EXPECT_EQ(TensorDesc({2, 17, 5, 4}, Layout::nhwc).size(), 2 * 17 * 5 * 4);
}

TEST(TensorDesc, OffsetIsABijectionOntoThePaddedElements) {
  for (Layout layout : kAllLayouts) {
    for (const Dims& dims : kShapes) {
      const TensorDesc desc(dims, layout);
      const Dims padded = desc.padded_dims();
      std::vector<int> hits(desc.size(), 0);
      for (int64_t n = 0; n < padded[kN]; ++n)
        for (int64_t c = 0; c < padded[kC]; ++c)
          for (int64_t h = 0; h < padded[kH]; ++h)
            for (int64_t w = 0; w < padded[kW]; ++w) ++hits.at(desc.offset(n, c, h, w));
      EXPECT_EQ(hits, std::vector<int>(hits.size(), 1)) << LayoutName(layout);
      EXPECT_TRUE(desc.is_dense());
      EXPECT_EQ(desc.layout(), layout);
    }
  }
}

TEST(TensorDesc, ZeroSizes) {
  for (Layout layout : kAllLayouts) {
    for (const Dims& dims : {Dims{0, 17, 5, 4}, Dims{2, 0, 5, 4}, Dims{2, 17, 0, 4}}) {
      const TensorDesc desc(dims, layout);
      EXPECT_EQ(desc.size(), 0);
      EXPECT_TRUE(desc.is_dense());
    }
  }
}

// Rows of 4 x 3 values inside rows of 10 x 3: a sub-tensor of an image.
TEST(TensorDesc, StridesDescribeASubTensor) {
  const TensorDesc whole({1, 3, 8, 10}, Layout::nhwc);
  const TensorDesc part({1, 3, 2, 4}, whole.strides());
  EXPECT_EQ(part.offset(0, 2, 1, 3), whole.offset(0, 2, 1, 3));
  EXPECT_EQ(part.size(), 1 + whole.offset(0, 2, 1, 3));
  EXPECT_FALSE(part.is_dense());
  EXPECT_FALSE(part.layout().has_value());
  EXPECT_EQ(part.block(), 1);
  EXPECT_TRUE(TensorDesc(whole.dims(), whole.strides()).is_dense());
}

}  // namespace
}  // namespace bd
