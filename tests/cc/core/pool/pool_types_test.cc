// Pooling of other types: the bits that reorders to float32 and back give around that of float32.
#include <gtest/gtest.h>

#include <vector>

#include "cc/core/pool/pool.h"
#include "tests/cc/isas.h"
#include "tests/cc/typed_tensor.h"

namespace bd {
namespace {

PoolDesc Windowed(PoolKind kind, Layout layout, const Dims& dims, Window1d axis) {
  PoolDesc desc;
  desc.kind = kind;
  desc.src = TensorView(DataType::f32, layout, dims);
  Dims out = {dims[0], dims[1]};
  Window1d* const axes[] = {&desc.windows.d, &desc.windows.h, &desc.windows.w};
  for (int i = 2; i < dims.size(); ++i) {
    Window1d& window = *axes[i + 3 - dims.size()];
    window = axis;
    window.size = dims[i];
  }
  EXPECT_EQ(ResolveWindows(Padding::kSame, &desc.windows), "");
  for (int64_t size : desc.windows.OutSizes(dims.size() - 2)) out.push_back(size);
  desc.dst = TensorView(DataType::f32, layout, out);
  return desc;
}

class PoolTypes : public testing::TestWithParam<Isa> {
 protected:
  void Check(const PoolDesc& f32, const ElementType& from, const ElementType& to) {
    TypedTensor src(f32.src, from, GetParam(), pool_), dst(f32.dst, to, GetParam(), pool_);
    PoolDesc desc = f32;
    desc.src = src.view(), desc.dst = dst.view();
    desc.src_quantization = from.quantization, desc.dst_quantization = to.quantization;
    PoolPlan floats, plan;
    ASSERT_EQ(MakePoolPlan(f32, GetParam(), &floats), "");
    ASSERT_EQ(MakePoolPlan(desc, GetParam(), &plan), "");
    RunPool(floats, src.floats(), dst.floats(), pool_);
    dst.Expect();
    RunPool(plan, src.data(), dst.data(), pool_);
    EXPECT_EQ(dst.Difference(), -1) << desc.src.ToString() << " to " << desc.dst.ToString();
  }
  ThreadPool pool_{2};
};

INSTANTIATE_TEST_SUITE_P(Isas, PoolTypes, testing::ValuesIn(TestIsas()),
                         [](const auto& info) { return std::string(IsaName(info.param)); });

TEST_P(PoolTypes, EveryPair) {
  const TensorView plane(DataType::f32, Layout::nChw16c, {2, 37, 3, 30});
  const TensorView volume(DataType::f32, Layout::nCdhw16c, {1, 20, 3, 4, 5});
  Window1d axis, dense;
  axis.kernel = 3;
  axis.stride = 2;
  dense.kernel = 5;
  dense.stride = 1;
  for (const ElementType& from : kElementTypes) {
    for (const ElementType& to : kElementTypes) {
      for (PoolKind kind : {PoolKind::kMax, PoolKind::kAvg}) {
        Check(Windowed(kind, Layout::nChw16c, {2, 20, 9, 11}, axis), from, to);
        Check(Windowed(kind, Layout::nChw16c, {1, 20, 7, 11}, dense), from, to);
        Check(Windowed(kind, Layout::nCdhw16c, {1, 16, 4, 5, 6}, axis), from, to);
        Check(PoolDesc::Global(kind, plane, Layout::nhwc), from, to);
        Check(PoolDesc::Global(kind, plane, Layout::nChw16c), from, to);
        Check(PoolDesc::Global(kind, volume, Layout::nc), from, to);
      }
    }
  }
}

// Every loop over rows of bfloat16, which has its own, with windows that reach beyond the plane.
TEST_P(PoolTypes, RowsOfBfloat16) {
  const ElementType bf16 = {DataType::bf16, {}};
  const int64_t windows[][2] = {{2, 2}, {3, 1}, {3, 2}, {4, 3}};
  for (const auto& [kernel, stride] : windows) {
    for (PoolKind kind : {PoolKind::kMax, PoolKind::kAvg}) {
      Window1d axis;
      axis.kernel = kernel;
      axis.stride = stride;
      Check(Windowed(kind, Layout::nChw16c, {2, 37, 9, 30}, axis), bf16, bf16);
      Check(Windowed(kind, Layout::nChw16c, {1, 16, 3, 3}, axis), bf16, ElementType());
    }
  }
}

// Sums of bytes are exact, so that three roundings are all: those of the sum, scaled, and divided.
TEST_P(PoolTypes, AveragesOfBytesAreExact) {
  constexpr int64_t kPixels = 113 * 97, kBlocks = 2;
  const TensorView src(DataType::u8, Layout::nChw16c, {1, 29, 113, 97});
  const Quantization from = {0.0173f, 41};
  std::vector<uint8_t> bytes(kBlocks * kPixels * 16);
  std::vector<int64_t> sums(kBlocks * 16);
  for (size_t i = 0; i < bytes.size(); ++i) {
    const size_t channel = i / (kPixels * 16) * 16 + i % 16;
    bytes[i] = channel < 29 ? i * 7919 % 256 : from.zero_point;
    sums[channel] += bytes[i] - from.zero_point;
  }
  for (Layout layout : {Layout::nChw16c, Layout::nc}) {
    PoolDesc desc = PoolDesc::Global(PoolKind::kAvg, src, layout);
    desc.dst = TensorView(DataType::f32, layout, desc.dst.dims());
    desc.src_quantization = from;
    PoolPlan plan;
    ASSERT_EQ(MakePoolPlan(desc, GetParam(), &plan), "");
    std::vector<float> dst(desc.dst.elements() + 1, -1.f);
    RunPool(plan, bytes.data(), dst.data(), pool_);
    for (int64_t c = 0; c < desc.dst.elements(); ++c) {
      const float expected = from.scale * static_cast<float>(sums[c]) / kPixels;
      EXPECT_EQ(dst[c], expected) << "channel " << c;
    }
    EXPECT_EQ(dst.back(), -1.f);
  }
}

}  // namespace
}  // namespace bd
