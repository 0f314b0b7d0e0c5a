// What the tests of convolution share: descriptions, blocked tensors and runs.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "cc/base/threads/thread_pool.h"
#include "cc/core/conv/conv.h"
#include "tests/cc/guarded_array.h"
#include "tests/cc/layouts.h"
#include "tests/cc/post_ops_ref.h"

namespace bd {

// A convolution as tests write it: sizes first, of which the description follows.
struct ConvShape {
  int64_t n = 1, ic = 1, ih = 1, iw = 1;
  int64_t oc = 1, oh = 1, ow = 1;
  int64_t kh = 1, kw = 1, sh = 1, sw = 1, dh = 1, dw = 1;
  int64_t pad_top = 0, pad_left = 0;
  int64_t groups = 1;
  Layout src_layout = Layout::nChw16c, dst_layout = Layout::nChw16c;
  ConvAlgorithm algorithm = ConvAlgorithm::kAuto;
  bool keeps_weights = false, changes_weights = false, hands_plain = false;
  PostOpChain post_ops;
  // Channel blocks of the wider tensors that src and dst are parts of; 0: of none.
  int64_t src_image_blocks = 0, dst_image_blocks = 0;
  std::vector<int64_t> src_blocks;
  int64_t pool_h = 1, pool_w = 1;

  int64_t dst_h() const { return oh / pool_h; }
  int64_t dst_w() const { return ow / pool_w; }

  operator ConvDesc() const {
    const auto view = [](Layout layout, const Dims& dims, int64_t blocks) {
      return TensorView(DataType::f32, layout, dims, blocks * dims[kH] * dims[kW] * 16);
    };
    ConvDesc d;
    d.src = view(src_layout, {n, ic, ih, iw}, src_image_blocks);
    d.dst = view(dst_layout, {n, oc, dst_h(), dst_w()}, dst_image_blocks);
    d.windows.h = {ih, kh, sh, dh, pad_top, 0, oh};
    d.windows.w = {iw, kw, sw, dw, pad_left, 0, ow};
    d.groups = groups;
    d.algorithm = algorithm;
    d.keeps_weights = keeps_weights;
    d.changes_weights = changes_weights;
    d.hands_plain = hands_plain;
    d.post_ops = post_ops;
    d.src_blocks = src_blocks;
    d.pool_h = pool_h;
    d.pool_w = pool_w;
    return d;
  }
};

inline int64_t TensorFloats(Layout layout, int64_t n, int64_t c, int64_t h, int64_t w) {
  return n * (layout == Layout::nhwc ? c : (c + 15) / 16 * 16) * h * w;
}

inline int64_t SrcFloats(const ConvShape& d) {
  return TensorFloats(d.src_layout, d.n, d.ic, d.ih, d.iw);
}
inline int64_t WeightFloats(const ConvShape& d) { return d.kh * d.kw * d.ic / d.groups * d.oc; }
// Of the result before pooling, which operands of the chain share.
inline int64_t ResultFloats(const ConvShape& d) {
  return TensorFloats(d.dst_layout, d.n, d.oc, d.oh, d.ow);
}

inline int64_t DstFloats(const ConvShape& d) {
  return TensorFloats(d.dst_layout, d.n, d.oc, d.dst_h(), d.dst_w());
}

inline void ClearSrcTail(const ConvShape& d, GuardedBuffer& src) {
  ClearTails(TensorView(DataType::f32, d.src_layout, {d.n, d.ic, d.ih, d.iw}), src.data());
}
inline void ClearResultTail(const ConvShape& d, GuardedBuffer& result) {
  ClearTails(TensorView(DataType::f32, d.dst_layout, {d.n, d.oc, d.oh, d.ow}), result.data());
}

// Throws what is wrong with the description, which fails the test.
inline ConvPlan PlanOf(const ConvDesc& d, Isa isa, int threads = 2) {
  ConvPlan plan;
  const std::string error = MakeConvPlan(d, isa, threads, &plan);
  if (!error.empty()) throw std::invalid_argument(error);
  return plan;
}

// Packs and runs in memory that ends at guard pages; `packed_for` as in PackConvWeights. Tensors
// are of the plan's types.
inline void PackAndRun(const ConvPlan& plan, const void* src, const void* weights,
                       const float* const* args, void* dst, ThreadPool& pool,
                       const float* packed_for = nullptr, const float* weight_scales = nullptr,
                       GuardedBuffer::Guard guard = GuardedBuffer::kAtEnd) {
  GuardedArray packed(plan.packed_bytes, guard), scratch(plan.scratch.bytes());
  const float* const plain = static_cast<const float*>(weights);
  PackConvWeights(plan, plain, packed.As<float>(), pool, packed_for);
  ConvBuffers buffers;
  buffers.src = static_cast<const float*>(src);
  buffers.packed = packed.As<float>();
  buffers.args = args;
  buffers.dst = static_cast<float*>(dst);
  buffers.scratch = scratch.data();
  buffers.plain = plain;
  buffers.weight_scales = weight_scales;
  RunConv(plan, buffers, pool);
}

// Of both axes, which may be the same.
struct Axes {
  Axes(int64_t both) : h(both), w(both) {}
  Axes(int64_t of_h, int64_t of_w) : h(of_h), w(of_w) {}
  int64_t h, w;
};

// Of a source [n, ic, ih, iw].
inline ConvShape ConvOf(const Dims& src, int64_t oc, Axes kernel, Axes stride = 1,
                        Axes dilation = 1, Axes pad_before = 0, Axes pad_after = 0) {
  const auto out = [](int64_t in, int64_t k, int64_t s, int64_t d) {
    return (in - (k - 1) * d - 1) / s + 1;
  };
  ConvShape d;
  d.n = src[0], d.ic = src[1], d.ih = src[2], d.iw = src[3], d.oc = oc;
  d.kh = kernel.h, d.sh = stride.h, d.dh = dilation.h, d.pad_top = pad_before.h;
  d.kw = kernel.w, d.sw = stride.w, d.dw = dilation.w, d.pad_left = pad_before.w;
  d.oh = out(d.ih + pad_before.h + pad_after.h, d.kh, d.sh, d.dh);
  d.ow = out(d.iw + pad_before.w + pad_after.w, d.kw, d.sw, d.dw);
  return d;
}

inline ConvShape Square(int64_t ic, int64_t size, int64_t oc, int64_t k, int64_t stride,
                        int64_t pad) {
  return ConvOf({1, ic, size, size}, oc, k, stride, 1, pad, pad);
}

// Whatever a description may say, from small sizes, so that channels, rows, tiles and padding end
// anywhere; of few enough products for a definition to be quick.
inline ConvShape DrawnShape(std::mt19937& rng) {
  constexpr int64_t kMostProducts = 1 << 20;
  const auto pick = [&](std::initializer_list<int64_t> list) {
    return list.begin()[rng() % list.size()];
  };
  const auto up_to = [&](int64_t most) { return static_cast<int64_t>(rng() % (most + 1)); };
  ConvShape d;
  do {
    const bool depthwise = pick({0, 0, 0, 1}), pointwise = !depthwise && pick({0, 0, 1});
    const bool padded = !pointwise && pick({0, 1, 1}), matrix = pointwise && pick({0, 0, 1});
    d.n = pick({1, 1, 2, 3});
    d.groups = depthwise ? 1 + up_to(40) : matrix ? 1 : pick({1, 1, 1, 2, 3, 5});
    d.ic = d.groups * (depthwise ? 1 : pick({1, 2, 3, 4, 9, 16, 20, 37, 70}));
    d.oc = d.groups * (depthwise ? 1 : pick({1, 2, 3, 5, 8, 16, 24, 40, 70}));
    d.kh = pointwise ? 1 : 1 + up_to(6);
    d.kw = pointwise ? 1 : 1 + up_to(6);
    d.sh = matrix ? 1 : pick({1, 1, 2, 3});
    d.sw = matrix ? 1 : pick({1, 1, 2, 3});
    d.dh = pick({1, 1, 2});
    d.dw = pick({1, 1, 2});
    d.pad_top = padded ? up_to(6) : 0;
    d.pad_left = padded ? up_to(6) : 0;
    d.oh = matrix ? 1 : 1 + up_to(8);
    d.ow = 1 + up_to(matrix ? 30 : 45);
    // The smallest source these outputs need, less some that counts as padding.
    const auto source = [&](int64_t out, int64_t s, int64_t k, int64_t dilation, int64_t before) {
      const int64_t after = padded ? up_to(3) : 0;
      return std::max<int64_t>(1, (out - 1) * s + (k - 1) * dilation + 1 - before - after);
    };
    d.ih = source(d.oh, d.sh, d.kh, d.dh, d.pad_top);
    d.iw = source(d.ow, d.sw, d.kw, d.dw, d.pad_left);
    d.src_layout = matrix || pick({0, 0, 1}) ? Layout::nhwc : Layout::nChw16c;
    d.dst_layout = matrix || pick({0, 0, 1}) ? Layout::nhwc : Layout::nChw16c;
    d.keeps_weights = pick({0, 1});
  } while (d.n * d.oh * d.ow * WeightFloats(d) > kMostProducts);
  return d;
}

// Calls product(o, element of src, element of HWIO) for each product of the results (n, o, y, x) of
// all channels.
template <typename Product>
void ForProducts(const ConvDesc& d, int64_t n, int64_t y, int64_t x, Product&& product) {
  const int64_t ic_group = d.ic() / d.groups, oc_group = d.oc() / d.groups;
  for (int64_t tap = 0; tap < d.kh() * d.kw(); ++tap) {
    const int64_t h = y * d.sh() + tap / d.kw() * d.dh() - d.pad_top();
    const int64_t w = x * d.sw() + tap % d.kw() * d.dw() - d.pad_left();
    if (h < 0 || h >= d.ih() || w < 0 || w >= d.iw()) continue;
    for (int64_t c = 0; c < d.ic(); ++c) {
      const int64_t src = d.src.element(n, c, h * d.iw() + w), first = c / ic_group * oc_group;
      const int64_t weights = (tap * ic_group + c % ic_group) * d.oc();
      for (int64_t o = first; o < first + oc_group; ++o) product(o, src, weights + o);
    }
  }
}

inline std::string Describe(const ConvShape& d, const ConvPlan& plan) {
  auto pair = [](int64_t a, int64_t b) { return std::to_string(a) + "x" + std::to_string(b); };
  return std::string(IsaName(plan.isa)) + " " + plan.algorithm_name() + " n" + std::to_string(d.n) +
         " ic" + std::to_string(d.ic) + " oc" + std::to_string(d.oc) + " g" +
         std::to_string(d.groups) + " in " + pair(d.ih, d.iw) + " out " + pair(d.oh, d.ow) + " k" +
         pair(d.kh, d.kw) + " s" + pair(d.sh, d.sw) + " d" + pair(d.dh, d.dw) + " p" +
         pair(d.pad_top, d.pad_left) + " " + LayoutName(d.src_layout) + " " +
         LayoutName(d.dst_layout) + " [" + d.post_ops.ToString() + "]";
}

}  // namespace bd
