// Resizing on every ISA, equal bit for bit to its definition. Tensors sit in guarded buffers.
#include "cc/core/resize/resize.h"

#include <gtest/gtest.h>

#include "tests/cc/core/resize/resize_ref.h"
#include "tests/cc/guarded_buffer.h"
#include "tests/cc/isas.h"
#include "tests/cc/typed_tensor.h"

namespace bd {
namespace {

constexpr ResizeKind kKinds[] = {ResizeKind::kNearest, ResizeKind::kBilinear};
constexpr ResizeCoordinates kCoordinates[] = {ResizeCoordinates::kHalfPixel,
                                              ResizeCoordinates::kAsymmetric,
                                              ResizeCoordinates::kAlignCorners};

TensorView View(int64_t n, int64_t c, int64_t h, int64_t w) {
  return TensorView(DataType::f32, Layout::nChw16c, {n, c, h, w});
}

class ResizeOnEveryIsa : public testing::TestWithParam<Isa> {
 protected:
  void Check(const ResizeDesc& d, GuardedBuffer::Guard guard) {
    SCOPED_TRACE(testing::Message()
                 << static_cast<int>(d.kind) << " " << static_cast<int>(d.coordinates) << " "
                 << d.src.ToString() << " to " << d.dst.ToString());
    ResizePlan plan;
    ASSERT_EQ(MakeResizePlan(d, GetParam(), &plan), "");
    GuardedBuffer src(d.src.elements(), guard), expected(d.dst.elements());
    GuardedBuffer dst(d.dst.elements(), guard);
    for (size_t i = 0; i < src.size(); ++i)
      src[i] = 0.37f * static_cast<float>(i * 7919 % 251) - 40;
    for (float& x : expected) x = 0;
    for (float& x : dst) x = 0;  // what lies between parts stays as it was
    ResizeRef(d, src.data(), expected.data());
    RunResize(plan, src.data(), dst.data(), pool_);
    for (size_t i = 0; i < dst.size(); ++i) ASSERT_EQ(dst[i], expected[i]) << "at " << i;
  }
  void CheckTypes(ResizeDesc f32, const ElementType& from, const ElementType& to, int64_t width) {
    f32.src = View(2, 20, 4, 5), f32.dst = View(2, 20, 8, width);
    bd::CheckTypes(f32, from, to, GetParam(), pool_,
                   [&](const ResizeDesc& d, const void* src, void* dst) {
                     ResizePlan plan;
                     ASSERT_EQ(MakeResizePlan(d, GetParam(), &plan), "");
                     RunResize(plan, src, dst, pool_);
                   });
  }
  void CheckAll(const TensorView& src, const TensorView& dst) {
    for (ResizeKind kind : kKinds) {
      for (ResizeCoordinates coordinates : kCoordinates) {
        for (auto guard : {GuardedBuffer::kAtStart, GuardedBuffer::kAtEnd}) {
          Check({kind, coordinates, src, dst}, guard);
        }
      }
    }
  }
  ThreadPool pool_{2};
};

INSTANTIATE_TEST_SUITE_P(Isas, ResizeOnEveryIsa, testing::ValuesIn(TestIsas()), IsaParam);

// Larger, smaller, by whole factors and by others.
TEST_P(ResizeOnEveryIsa, Sizes) {
  for (int64_t in : {1, 2, 3, 5, 8}) {
    for (int64_t out : {1, 2, 4, 6, 7, 15, 16}) CheckAll(View(2, 20, in, 4), View(2, 20, out, 8));
    for (int64_t out : {1, 2, 4, 6, 7, 15, 16}) CheckAll(View(1, 16, 3, in), View(1, 16, 3, out));
  }
}

// More than one task, and parts of wider tensors.
TEST_P(ResizeOnEveryIsa, LargePlanesAndParts) {
  CheckAll(View(1, 32, 40, 50), View(1, 32, 80, 100));
  const TensorView src(DataType::f32, Layout::nChw16c, {2, 16, 3, 4}, 3 * 3 * 4 * 16);
  const TensorView dst(DataType::f32, Layout::nChw16c, {2, 16, 6, 8}, 2 * 6 * 8 * 16);
  CheckAll(src, dst);
}

// Other types: the bits that reorders to float32 and back give around the work on float32.
TEST_P(ResizeOnEveryIsa, OfEveryType) {
  for (const ElementType& from : kElementTypes) {
    for (const ElementType& to : kElementTypes) {
      for (ResizeKind kind : kKinds) {
        for (ResizeCoordinates coordinates : kCoordinates) {
          for (int64_t width : {7, 10}) CheckTypes({kind, coordinates}, from, to, width);
        }
      }
    }
  }
}

TEST(ResizePlan, SaysWhatIsWrong) {
  ResizePlan plan;
  const auto error = [&](const TensorView& src, const TensorView& dst) {
    return MakeResizePlan({ResizeKind::kNearest, ResizeCoordinates::kHalfPixel, src, dst},
                          Isa::kGeneric, &plan);
  };
  EXPECT_EQ(error(View(0, 16, 0, 0), View(0, 16, 2, 2)), "there are no pixels to resize");
  EXPECT_EQ(error(View(2, 16, 0, 0), View(2, 16, 0, 0)), "");
  EXPECT_NE(error(View(2, 16, 2, 2), View(1, 16, 4, 4)), "");
  EXPECT_NE(error(View(2, 16, 2, 2), View(2, 32, 4, 4)), "");
  EXPECT_NE(error(TensorView(DataType::f32, Layout::nhwc, {2, 16, 2, 2}), View(2, 16, 4, 4)), "");
}

}  // namespace
}  // namespace bd
