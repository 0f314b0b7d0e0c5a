#include "cc/layout/layout.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/cc/layouts.h"

namespace bd {
namespace {

TEST(Layout, NamesRoundTrip) {
  EXPECT_EQ(AllLayouts().size(), static_cast<size_t>(kNumLayouts));
  for (Layout layout : AllLayouts()) {
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
  EXPECT_EQ(UnknownLayout("hcwn"),
            "unknown layout \"hcwn\": names are like nhwc, nChw16c, OIhw16i16o; "
            "bd.TensorDesc.layouts() lists all 54");
}

TEST(Layout, ChannelBlocks) {
  EXPECT_EQ(ChannelBlock(Layout::nhwc), 1);
  EXPECT_EQ(ChannelBlock(Layout::nchw), 1);
  EXPECT_EQ(ChannelBlock(Layout::chwn), 1);
  EXPECT_EQ(ChannelBlock(Layout::nChw8c), 8);
  EXPECT_EQ(ChannelBlock(Layout::nCdhw16c), 16);
  EXPECT_EQ(ChannelBlock(Layout::oihw), 1);
}

// The logical order does not depend on the layout.
TEST(Layout, PartsFollowFromTheName) {
  EXPECT_STREQ(PartsOf(Layout::chwn).letters, "nchw");
  EXPECT_STREQ(PartsOf(Layout::ndhwc).letters, "ncdhw");
  EXPECT_STREQ(PartsOf(Layout::dhwigo).letters, "goidhw");
  const LayoutParts parts = PartsOf(Layout::gOIhw8i8o);
  EXPECT_EQ(parts.rank, 5);
  EXPECT_EQ(Dims({parts.order[0], parts.order[1], parts.order[4]}), Dims({0, 1, 4}));
  EXPECT_EQ(parts.num_inner, 2);
  EXPECT_EQ(parts.inner_dim[0], 2);  // i
  EXPECT_EQ(parts.inner_dim[1], 1);  // o, innermost
  EXPECT_EQ(Dims({parts.block(0), parts.block(1), parts.block(2), parts.block(3)}),
            Dims({1, 8, 8, 1}));
}

TEST(Layout, PhysicalShapes) {
  EXPECT_EQ(PhysicalShape(Layout::chwn, {2, 17, 5, 4}), Dims({17, 5, 4, 2}));
  EXPECT_EQ(PhysicalShape(Layout::nChw16c, {2, 17, 5, 4}), Dims({2, 2, 5, 4, 16}));
  EXPECT_EQ(PhysicalShape(Layout::nChw16c, {-1, 0, 5, -1}), Dims({-1, 0, 5, -1, 16}));
  EXPECT_EQ(PhysicalShape(Layout::OIhw8i8o, {17, -1, 3, 3}), Dims({3, -1, 3, 3, 8, 8}));
  EXPECT_EQ(PhysicalShape(Layout::Goihw16g, {33, 1, 1, 3, 3}), Dims({3, 1, 1, 3, 3, 16}));
  EXPECT_EQ(PhysicalShape(Layout::gOIdhw16i16o, {2, 33, 1, 3, 4, 5}),
            Dims({2, 3, 1, 3, 4, 5, 16, 16}));
}

}  // namespace
}  // namespace bd
