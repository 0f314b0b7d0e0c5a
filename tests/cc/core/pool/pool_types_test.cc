// Pooling of other types: the bits that reorders to float32 and back give around that of float32.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "cc/core/pool/pool.h"
#include "tests/cc/guarded_array.h"
#include "tests/cc/isas.h"
#include "tests/cc/layouts.h"
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
    CheckTypes(f32, from, to, GetParam(), pool_,
               [&](const PoolDesc& d, const void* src, void* dst) {
                 PoolPlan plan;
                 ASSERT_EQ(MakePoolPlan(d, GetParam(), &plan), "");
                 RunPool(plan, src, dst, pool_);
               });
  }
  ThreadPool pool_{2};
};

INSTANTIATE_TEST_SUITE_P(Isas, PoolTypes, testing::ValuesIn(TestIsas()), IsaParam);

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

// All sums of up to 12 bytes, those of windows that reach beyond the plane, too: the bytes of a
// window add up to the number of their channel, and differ by 1 at most, so that from a channel to
// the next the sum of any part of a window grows by 1 or by nothing. The roundings are those of
// float32: steps from the zero point, times the inverse of their number.
TEST_P(PoolTypes, AveragesOfFewBytes) {
  float below_one = 0.01f;  // times its inverse
  while (below_one * (1.f / below_one) == 1.f) below_one = std::nextafter(below_one, 1.f);
  const int64_t windows[][3] = {{3, 3, 1}, {3, 3, 2}, {2, 2, 2}, {4, 3, 1}, {1, 3, 2}, {5, 2, 2}};
  for (const auto& [kernel_h, kernel_w, stride] : windows) {
    const int64_t n = kernel_h * kernel_w, height = kernel_h + 2, width = 11,
                  pixels = height * width;
    PoolDesc desc;
    desc.kind = PoolKind::kAvg;
    Window1d &rows = desc.windows.h, &columns = desc.windows.w;
    rows = {height, kernel_h, 1}, columns = {width, kernel_w, stride};
    ASSERT_EQ(ResolveWindows(Padding::kSame, &desc.windows), "");
    desc.src = TensorView(DataType::u8, Layout::nChw16c, {1, 256 * n, height, width});
    desc.dst = TensorView(DataType::u8, Layout::nChw16c, {1, 256 * n, rows.out, columns.out});
    GuardedArray at_end(desc.src.elements()),
        at_start(desc.src.elements(), GuardedBuffer::kAtStart);
    for (int64_t i = 0; i < desc.src.elements(); ++i) {
      const int64_t sum = std::min(i / 16 / pixels * 16 + i % 16, 255 * n);
      const int64_t y = i / 16 % pixels / width, x = i / 16 % width;
      const bool more = y % kernel_h * kernel_w + x % kernel_w < sum % n;
      at_end.As<uint8_t>()[i] = at_start.As<uint8_t>()[i] = static_cast<uint8_t>(sum / n + more);
    }
    std::vector<int> sums(desc.dst.elements()), counts(desc.dst.elements());
    std::map<int, std::vector<bool>> seen;
    for (int64_t i = 0; i < desc.dst.elements(); ++i) {
      const int64_t out = i / 16 % (rows.out * columns.out);
      const int64_t top = out / columns.out - rows.pad_before;
      const int64_t left = out % columns.out * stride - columns.pad_before;
      const int64_t plane = i / 16 / (rows.out * columns.out) * pixels;
      for (int64_t y = std::max<int64_t>(top, 0); y < std::min(top + kernel_h, height); ++y) {
        for (int64_t x = std::max<int64_t>(left, 0); x < std::min(left + kernel_w, width); ++x) {
          sums[i] += at_end.As<uint8_t>()[(plane + y * width + x) * 16 + i % 16];
          ++counts[i];
        }
      }
      seen[counts[i]].resize(255 * counts[i] + 1);
      seen[counts[i]][sums[i]] = true;
    }
    for (const auto& [count, of_count] : seen) {
      ASSERT_EQ(std::count(of_count.begin(), of_count.end(), false), 0) << count;
    }
    for (float scale : {1.f, 0.017f, below_one}) {
      for (int zero : {0, 1, 77, 128, 255}) {
        desc.src_quantization = desc.dst_quantization = {scale, zero};
        PoolPlan plan;
        ASSERT_EQ(MakePoolPlan(desc, GetParam(), &plan), "");
        for (auto guard : {GuardedBuffer::kAtEnd, GuardedBuffer::kAtStart}) {
          GuardedArray dst(desc.dst.elements(), guard);
          GuardedArray& src = guard == GuardedBuffer::kAtEnd ? at_end : at_start;
          RunPool(plan, src.data(), dst.data(), pool_);
          for (int64_t i = 0; i < desc.dst.elements(); ++i) {
            const float inverse = scale * (1.f / scale) / static_cast<float>(counts[i]);
            const float steps = static_cast<float>(sums[i] - zero * counts[i]) * inverse;
            ASSERT_EQ(dst.As<uint8_t>()[i], std::nearbyint(steps) + static_cast<float>(zero))
                << sums[i] << " / " << counts[i] << " from " << zero << " by " << scale;
          }
        }
      }
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
