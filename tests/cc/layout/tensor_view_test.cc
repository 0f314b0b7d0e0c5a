#include "cc/layout/tensor_view.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace bd {
namespace {

std::string MakeError(Layout layout, const Dims& dims, int64_t image_stride = 0) {
  TensorView view;
  return TensorView::Make(DataType::f32, layout, dims, image_stride, &view);
}

// Every layout of activations whose images are outermost.
const std::vector<Layout> kViewed = {
    Layout::nc,    Layout::nC8c,  Layout::nC16c,  Layout::ncw,     Layout::nwc,
    Layout::nCw8c, Layout::nchw,  Layout::nhwc,   Layout::nChw8c,  Layout::nChw16c,
    Layout::ncdhw, Layout::ndhwc, Layout::nCw16c, Layout::nCdhw8c, Layout::nCdhw16c};

Dims SizesFor(Layout layout, int64_t channels) {
  Dims dims = {3, channels};
  for (int i = 2; i < PartsOf(layout).rank; ++i) dims.push_back(i + 1);
  return dims;
}

// The formula of the header is that of TensorDesc, for every element and also with gaps between
// images.
TEST(TensorView, PlacesElementsAsTensorDescDoes) {
  for (Layout layout : kViewed) {
    for (int64_t channels : {1, 7, 16, 37}) {
      const Dims dims = SizesFor(layout, channels);
      const int64_t dense = TensorView(DataType::f32, layout, dims).image_stride();
      for (int64_t stride : {dense, dense + 32}) {
        const TensorView view(DataType::bf16, layout, dims, stride);
        const TensorDesc desc = view.desc();
        SCOPED_TRACE(view.ToString());
        EXPECT_EQ(view.elements(), desc.size());
        EXPECT_EQ(view.bytes(), desc.size_bytes());
        EXPECT_EQ(view.bytes(), 2 * view.elements());
        EXPECT_EQ(view.dense(), stride == dense);
        EXPECT_EQ(view.blocked(), PartsOf(layout).num_inner > 0);
        EXPECT_EQ(view.channels_last(),
                  LayoutName(layout)[strlen(LayoutName(layout)) - 1] == 'c' && !view.blocked());
        for (int64_t n = 0; n < view.n(); ++n) {
          for (int64_t c = 0; c < channels; ++c) {
            for (int64_t p = 0; p < view.pixels(); ++p) {
              const int64_t at[] = {p / (view.h() * view.w()), p / view.w() % view.h(),
                                    p % view.w()};
              Dims index = {n, c};
              for (int i = 3 - view.spatial_rank(); i < 3; ++i) index.push_back(at[i]);
              const int64_t offset = view.offset(n, c / view.lanes(), p) + c % view.lanes();
              ASSERT_EQ(offset, desc.OffsetOf(index.data())) << index.ToString();
              ASSERT_EQ(view.byte_offset(n, c / view.lanes(), p),
                        2 * view.offset(n, c / view.lanes(), p));
            }
          }
        }
        TensorView back;
        ASSERT_TRUE(TensorView::Of(desc, &back));
        EXPECT_EQ(back, view);
      }
    }
  }
}

TEST(TensorView, SaysSizesByName) {
  const TensorView view(DataType::f32, Layout::nCdhw16c, {2, 40, 3, 4, 5});
  EXPECT_EQ(view.n(), 2);
  EXPECT_EQ(view.c(), 40);
  EXPECT_EQ(view.spatial_rank(), 3);
  EXPECT_EQ(view.d(), 3);
  EXPECT_EQ(view.h(), 4);
  EXPECT_EQ(view.w(), 5);
  EXPECT_EQ(view.pixels(), 60);
  EXPECT_EQ(view.lanes(), 16);
  EXPECT_EQ(view.blocks(), 3);
  EXPECT_EQ(view.lanes_of(0), 16);
  EXPECT_EQ(view.lanes_of(2), 8);
  EXPECT_EQ(view.block_stride(), 60 * 16);
  EXPECT_EQ(view.image_stride(), 3 * 60 * 16);
  EXPECT_EQ(view.ToString(), "float32 nCdhw16c [2, 40, 3, 4, 5]");

  const TensorView line(DataType::f32, Layout::nwc, {2, 7, 5});
  EXPECT_EQ(line.d(), 1);
  EXPECT_EQ(line.h(), 1);
  EXPECT_EQ(line.w(), 5);
  const TensorView rows(DataType::f32, Layout::nc, {2, 7});
  EXPECT_EQ(rows.w(), 1);
  EXPECT_EQ(rows.pixels(), 1);
}

TEST(TensorView, PartsOfWiderTensors) {
  const TensorView wide(DataType::f32, Layout::nChw16c, {2, 80, 3, 3});
  TensorView part;
  ASSERT_EQ(wide.FirstChannels(20, &part), "");
  EXPECT_EQ(part.blocks(), 2);
  EXPECT_EQ(part.image_stride(), 5 * 9 * 16);
  EXPECT_EQ(part.elements(), (5 + 2) * 9 * 16);
  EXPECT_FALSE(part.dense());
  EXPECT_EQ(part.ToString(), "float32 nChw16c [2, 20, 3, 3] images 720 apart");
  ASSERT_EQ(wide.FirstChannels(80, &part), "");
  EXPECT_EQ(part, wide);

  const TensorView last(DataType::f32, Layout::nhwc, {2, 80, 3, 3});
  EXPECT_NE(last.FirstChannels(20, &part).find("nhwc"), std::string::npos);
  EXPECT_NE(wide.FirstChannels(81, &part).find("81 channels are not a part of 80"),
            std::string::npos);
}

TEST(TensorView, EmptyTensorsNeedNoMemory) {
  EXPECT_EQ(TensorView().bytes(), 0);
  for (Layout layout : kViewed) {
    Dims dims = SizesFor(layout, 7);
    for (int i = 0; i < dims.size(); ++i) {
      Dims empty = dims;
      empty[i] = 0;
      EXPECT_EQ(TensorView(DataType::f32, layout, empty).bytes(), 0) << LayoutName(layout);
    }
  }
}

TEST(TensorView, NamesWhatIsWrong) {
  const struct {
    std::string error;
    const char* words;
  } cases[] = {
      {MakeError(Layout::oihw, {1, 2, 3, 4}), "oihw is not one of activations"},
      {MakeError(Layout::chwn, {1, 2, 3, 4}), "chwn is not one of activations"},
      {MakeError(Layout::x, {1}), "x is not one of activations"},
      {MakeError(Layout::nhwc, {1, 2, 3}), "4 dimensions, n, c, h, w"},
      {MakeError(Layout::nhwc, {1, -2, 3, 4}), "must not be negative"},
      {MakeError(Layout::nhwc, {2, 3, 4, 5}, 59), "60 elements cannot be 59 elements apart"},
      {MakeError(Layout::nChw16c, {2, 3, 4, 5}, 321), "no multiple of the block's 16"},
      {MakeError(Layout::nchw, {1 << 20, 1 << 20, 1 << 20, 8}), "too large"},
      {MakeError(Layout::nchw, {3, 1, 1, 1}, int64_t{1} << 60), "too large"},
  };
  for (const auto& c : cases) {
    EXPECT_NE(c.error.find(c.words), std::string::npos) << "got: " << c.error;
  }
}

// What no view can say is not taken for one.
TEST(TensorView, OfOtherDescriptions) {
  TensorView view;
  const auto of = [&view](const Dims& dims, Layout layout, const Dims& strides, int64_t offset) {
    TensorDesc desc;
    EXPECT_EQ(TensorDesc::Make(dims, DataType::f32, layout, strides, offset, &desc), "");
    return TensorView::Of(desc, &view);
  };
  EXPECT_TRUE(of({2, 3, 4, 5}, Layout::nhwc, {}, 0));
  EXPECT_FALSE(of({2, 3, 4, 5}, Layout::nhwc, {}, 8));
  EXPECT_TRUE(of({2, 3, 4, 5}, Layout::nhwc, {100, 1, 15, 3}, 0));
  EXPECT_EQ(view.image_stride(), 100);
  EXPECT_FALSE(of({2, 3, 4, 5}, Layout::nhwc, {100, 1, 20, 3}, 0));
  EXPECT_FALSE(of({2, 3, 4, 5}, Layout::nhwc, {0, 1, 15, 3}, 0));
  EXPECT_TRUE(of({1, 3, 4, 5}, Layout::nhwc, {0, 1, 15, 3}, 0));
  EXPECT_FALSE(of({2, 3, 4, 5}, Layout::chwn, {}, 0));
  EXPECT_FALSE(of({2, 3, 4, 5}, Layout::oihw, {}, 0));
}

}  // namespace
}  // namespace bd
