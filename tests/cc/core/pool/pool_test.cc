#include "cc/core/pool/pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/cc/core/pool/pool_grad_ref.h"
#include "tests/cc/core/pool/pool_ref.h"
#include "tests/cc/guarded_buffer.h"
#include "tests/cc/isas.h"
#include "tests/cc/layouts.h"

namespace bd {
namespace {

constexpr PoolKind kKinds[] = {PoolKind::kMax, PoolKind::kAvg};

Layout BlockedLayout(int rank) {
  return rank == 1 ? Layout::nCw16c : rank == 2 ? Layout::nChw16c : Layout::nCdhw16c;
}

// Negative integers only, so that a zero that leaks into a maximum shows; `seventh` now and then.
void FillSrc(const TensorView& view, GuardedBuffer* src, float seventh) {
  for (int64_t i = 0; i < static_cast<int64_t>(src->size()); ++i) {
    (*src)[i] = i % 7 == 0 ? seventh : -1.f - static_cast<float>(i * 7919 % 251);
  }
  ClearTails(view, src->data());
}

std::string Described(const PoolDesc& desc, Isa isa) {
  const Windows& w = desc.windows;
  const Dims kernel = {w.d.kernel, w.h.kernel, w.w.kernel};
  const Dims stride = {w.d.stride, w.h.stride, w.w.stride};
  return std::string(IsaName(isa)) + (desc.kind == PoolKind::kMax ? " max " : " avg ") +
         desc.src.ToString() + " to " + desc.dst.ToString() + " kernel " + kernel.ToString() +
         " by " + stride.ToString();
}

// Sums of small integers are exact in any order, so results must be equal.
void Check(const PoolDesc& desc, Isa isa, ThreadPool& pool, GuardedBuffer::Guard guard) {
  SCOPED_TRACE(Described(desc, isa));
  PoolPlan plan;
  ASSERT_EQ(MakePoolPlan(desc, isa, &plan), "");
  GuardedBuffer src(desc.src.elements(), guard);
  GuardedBuffer expected(desc.dst.elements()), dst(desc.dst.elements(), guard);
  for (const float seventh : {-1.f, NAN, INFINITY}) {
    FillSrc(desc.src, &src, seventh);
    expected.Fill(77.f);  // between the images of a part
    dst.Fill(77.f);
    PoolRef(plan, src.data(), expected.data());
    RunPool(plan, src.data(), dst.data(), pool);
    for (size_t i = 0; i < dst.size(); ++i) {
      if (std::isnan(expected[i]) && std::isnan(dst[i])) continue;
      ASSERT_EQ(dst[i], expected[i]) << "at " << i << " with " << seventh;
    }
  }
}

// The axes are the last ones of depth, height and width.
PoolDesc Desc(PoolKind kind, int64_t n, int64_t channels, Padding padding,
              const std::vector<Window1d>& axes) {
  PoolDesc desc;
  desc.kind = kind;
  Windows& w = desc.windows;
  Window1d* const all[] = {&w.d, &w.h, &w.w};
  const int rank = static_cast<int>(axes.size());
  Dims in = {n, channels}, out = {n, channels};
  for (int i = 0; i < rank; ++i) {
    *all[3 - rank + i] = axes[i];
    in.push_back(axes[i].size);
  }
  EXPECT_EQ(ResolveWindows(padding, &w), "");
  for (int64_t size : w.OutSizes(rank)) out.push_back(size);
  desc.src = TensorView(DataType::f32, BlockedLayout(rank), in);
  desc.dst = TensorView(DataType::f32, BlockedLayout(rank), out);
  return desc;
}

PoolDesc Global(PoolKind kind, int64_t n, int64_t channels, int64_t h, int64_t w, bool plain) {
  return PoolDesc::Global(kind, TensorView(DataType::f32, Layout::nChw16c, {n, channels, h, w}),
                          plain ? Layout::nhwc : Layout::nChw16c);
}

Window1d Window(int64_t size, int64_t kernel, int64_t stride, int64_t before = 0,
                int64_t after = 0) {
  return {size, kernel, stride, 1, before, after, 0};
}

class PoolOnEveryIsa : public testing::TestWithParam<Isa> {
 protected:
  void CheckBothEnds(const PoolDesc& desc) {
    Check(desc, GetParam(), pool_, GuardedBuffer::kAtEnd);
    Check(desc, GetParam(), pool_, GuardedBuffer::kAtStart);
  }
  ThreadPool pool_{2};
};

INSTANTIATE_TEST_SUITE_P(Isas, PoolOnEveryIsa, testing::ValuesIn(TestIsas()), IsaParam);

// Few values, so that windows have several maxima.
void CheckGrad(const PoolDesc& desc, Isa isa, ThreadPool& pool, GuardedBuffer::Guard guard) {
  SCOPED_TRACE(Described(desc, isa));
  PoolGradPlan plan;
  ASSERT_EQ(MakePoolGradPlan(desc, isa, &plan), "");
  PoolPlan forward;
  ASSERT_EQ(MakePoolPlan(desc, isa, &forward), "");
  GuardedBuffer src(desc.src.elements(), guard), dst(desc.dst.elements(), guard);
  GuardedBuffer ddst(desc.dst.elements(), guard), dsrc(desc.src.elements(), guard);
  GuardedBuffer expected(desc.src.elements());
  for (size_t i = 0; i < src.size(); ++i) src[i] = -static_cast<float>(i * 7919 % 251 % 3);
  for (size_t i = 0; i < ddst.size(); ++i) ddst[i] = static_cast<float>(i * 31 % 17) - 8.f;
  RunPool(forward, src.data(), dst.data(), pool);
  PoolGradRef(desc, {src.data(), dst.data(), ddst.data(), expected.data()});
  RunPoolGrad(plan, {src.data(), dst.data(), ddst.data(), dsrc.data()}, pool);
  for (size_t i = 0; i < dsrc.size(); ++i) ASSERT_EQ(dsrc[i], expected[i]) << "at " << i;
}

// Lines, planes and volumes, as parts of wider tensors and alone: rows around every width of tile,
// strides above and below the kernel, kernels larger than the input, each kind of padding. Of
// planes the gradient, too.
TEST_P(PoolOnEveryIsa, DrawnWindows) {
  std::mt19937 rng(1);
  const auto up_to = [&](int64_t most) { return static_cast<int64_t>(rng() % (most + 1)); };
  int gradients = 0;
  for (int i = 0; i < 400; ++i) {
    const PoolKind kind = kKinds[rng() % 2];
    const auto padding = static_cast<Padding>(rng() % 3);
    std::vector<Window1d> axes(1 + (i % 4 == 0 ? up_to(2) : 1));
    for (Window1d& axis : axes) {
      const int64_t kernel = 1 + (up_to(9) == 0 ? up_to(8) : up_to(4));
      axis = Window(1 + up_to(axes.size() == 3 ? 6 : 29), kernel, 1 + up_to(3));
      if (padding == Padding::kExplicit) {
        axis.pad_before = up_to(kernel - 1);
        axis.pad_after = up_to(kernel - 1);
      }
      if (padding == Padding::kValid) axis.size = std::max(axis.size, kernel);
    }
    PoolDesc desc = Desc(kind, 1 + up_to(2), 1 + up_to(40), padding, axes);
    if (axes.size() == 2 && desc.windows.w.out > 0 && desc.windows.h.out > 0) {
      const auto guard = i % 2 == 0 ? GuardedBuffer::kAtEnd : GuardedBuffer::kAtStart;
      CheckGrad(desc, GetParam(), pool_, guard);
      ++gradients;
    }
    if (i % 3 == 0) {
      const auto part = [](const TensorView& view) {
        return TensorView(view.dtype(), view.layout(), view.dims(), 5 * view.block_stride());
      };
      desc.src = part(desc.src);
      desc.dst = part(desc.dst);
    }
    CheckBothEnds(desc);
  }
  EXPECT_GE(gradients, 220);
}

TEST_P(PoolOnEveryIsa, GlobalInEveryDstLayout) {
  for (PoolKind kind : kKinds) {
    for (int64_t channels : {1, 7, 16, 37}) {
      for (int64_t w : {1, 8, 9, 30}) {
        for (bool plain : {false, true}) CheckBothEnds(Global(kind, 2, channels, 3, w, plain));
      }
    }
    for (Layout to : {Layout::nc, Layout::ndhwc, Layout::nCdhw16c}) {
      const TensorView src(DataType::f32, Layout::nCdhw16c, {2, 23, 3, 4, 5});
      CheckBothEnds(PoolDesc::Global(kind, src, to));
    }
    const TensorView line(DataType::f32, Layout::nCw16c, {2, 23, 9});
    CheckBothEnds(PoolDesc::Global(kind, line, Layout::nc));
    CheckBothEnds(PoolDesc::Global(kind, line, Layout::nCw16c));
  }
}

TEST(PoolGrad, VolumesAndPlainResultsAreRefused) {
  PoolGradPlan plan;
  const Window1d axis = Window(4, 2, 2);
  EXPECT_EQ(MakePoolGradPlan(Desc(PoolKind::kMax, 1, 16, Padding::kSame, {axis, axis, axis}),
                             Isa::kGeneric, &plan),
            "the gradient is of planes alone");
  EXPECT_EQ(MakePoolGradPlan(Global(PoolKind::kMax, 1, 16, 4, 4, true), Isa::kGeneric, &plan),
            "the gradient reads dst in blocks");
}

// No image, no channel, no output pixel; and windows over nothing, whose tails
// are zeros all the same.
TEST_P(PoolOnEveryIsa, EmptyTensors) {
  for (PoolKind kind : kKinds) {
    CheckBothEnds(Desc(kind, 0, 16, Padding::kSame, {Window(4, 2, 2), Window(4, 2, 2)}));
    CheckBothEnds(Desc(kind, 1, 0, Padding::kSame, {Window(4, 2, 2), Window(4, 2, 2)}));
    CheckBothEnds(Desc(kind, 1, 16, Padding::kValid, {Window(4, 5, 2), Window(4, 2, 2)}));
    CheckBothEnds(Desc(kind, 1, 16, Padding::kSame, {Window(4, 2, 2), Window(0, 2, 2)}));
    CheckBothEnds(
        Desc(kind, 2, 19, Padding::kExplicit, {Window(0, 2, 1, 1, 1), Window(4, 2, 1, 0, 0)}));
    CheckBothEnds(
        Desc(kind, 2, 20, Padding::kSame, {Window(0, 3, 2), Window(5, 3, 1), Window(9, 3, 2)}));
    CheckBothEnds(Global(kind, 2, 19, 0, 4, true));
    CheckBothEnds(Global(kind, 2, 19, 3, 0, false));
  }
}

// Enough work for many tasks.
TEST_P(PoolOnEveryIsa, ManyTasks) {
  for (PoolKind kind : kKinds) {
    const PoolDesc desc = Desc(kind, 2, 40, Padding::kSame, {Window(56, 3, 2), Window(56, 3, 2)});
    PoolPlan plan;
    ASSERT_EQ(MakePoolPlan(desc, GetParam(), &plan), "");
    ASSERT_GT(plan.tasks, 3);
    CheckBothEnds(desc);
    CheckBothEnds(Global(kind, 4, 100, 40, 40, true));
  }
}

TEST(PoolPlan, OneTaskForSmallWork) {
  PoolPlan plan;
  ASSERT_EQ(MakePoolPlan(Global(PoolKind::kAvg, 1, 256, 7, 7, true), DetectIsa(), &plan), "");
  EXPECT_EQ(plan.tasks, 1);
}

// A window that covers the plane is pooled as a global one, whatever its padding.
TEST(PoolPlan, WholePlane) {
  const struct {
    Padding padding;
    Window1d window;
    bool whole;
  } cases[] = {
      {Padding::kValid, Window(8, 8, 8), true},          {Padding::kSame, Window(2, 3, 2), true},
      {Padding::kExplicit, Window(3, 4, 2, 1, 1), true}, {Padding::kValid, Window(8, 7, 2), false},
      {Padding::kSame, Window(2, 3, 1), false},
  };
  for (const auto& c : cases) {
    PoolPlan plan;
    ASSERT_EQ(MakePoolPlan(Desc(PoolKind::kAvg, 1, 16, c.padding, {c.window, c.window}),
                           Isa::kGeneric, &plan),
              "");
    EXPECT_EQ(plan.whole_plane, c.whole) << c.window.size << " kernel " << c.window.kernel;
  }
}

TEST(PoolPlan, NamesWhatIsWrong) {
  const Window1d good = Window(8, 2, 2);
  const PoolDesc fine = Desc(PoolKind::kMax, 1, 16, Padding::kSame, {good, good});
  const auto with = [&fine](auto change) {
    PoolDesc desc = fine;
    change(&desc);
    return desc;
  };
  const auto view = [](DataType dtype, Layout layout, const Dims& dims) {
    return TensorView(dtype, layout, dims);
  };
  const struct {
    PoolDesc desc;
    const char* words;
  } cases[] = {
      {Desc(PoolKind::kMax, 1, 16, Padding::kExplicit, {Window(8, 2, 1, 2, 0), good}),
       "height: padding 2 needs to be smaller than the window 2"},
      {Desc(PoolKind::kMax, 1, 16, Padding::kExplicit, {good, Window(8, 2, 1, 0, 3)}),
       "width: padding 3 needs to be smaller than the window 2"},
      {with([](PoolDesc* d) { d->windows.d.dilation = 2; }), "depth: pooling has no dilation"},
      {with([&](PoolDesc* d) {
         d->src = view(DataType::f32, Layout::nChw8c, {1, 16, 8, 8});
       }),
       "blocks of 16 channels, got layout nChw8c"},
      {with([&](PoolDesc* d) {
         d->src = view(DataType::f32, Layout::nChw16c, {1, 16, 9, 8});
       }),
       "the windows move over [1, 8, 8], src has [1, 9, 8]"},
      {with([&](PoolDesc* d) {
         d->dst = view(DataType::f32, Layout::nChw16c, {1, 16, 4, 3});
       }),
       "which is not [1, 16] with the windows' [1, 4, 4]"},
      {with([&](PoolDesc* d) {
         d->dst = view(DataType::f32, Layout::nChw16c, {1, 15, 4, 4});
       }),
       "which is not [1, 16]"},
      {with([&](PoolDesc* d) {
         d->dst = view(DataType::f32, Layout::nChw8c, {1, 16, 4, 4});
       }),
       "dst's layout nChw8c is not src's nChw16c"},
      {with([&](PoolDesc* d) {
         d->dst = view(DataType::f32, Layout::nhwc, {1, 16, 4, 4});
       }),
       "only global pooling has a plain dst, got 16 output pixels"},
  };
  for (const auto& c : cases) {
    PoolPlan plan;
    const std::string error = MakePoolPlan(c.desc, Isa::kGeneric, &plan);
    EXPECT_NE(error.find(c.words), std::string::npos) << "got: " << error;
  }
}

// The definition itself, by hand: TensorFlow's AvgPool and MaxPool of this row.
TEST(PoolRef, SameStride2ByHand) {
  const struct {
    PoolKind kind;
    float first, second;  // of -1 -2 -5, of -5 -10
  } cases[] = {{PoolKind::kMax, -1.f, -5.f}, {PoolKind::kAvg, -8.f / 3, -7.5f}};
  for (const auto& c : cases) {
    const PoolDesc desc = Desc(c.kind, 1, 1, Padding::kSame, {Window(1, 1, 1), Window(4, 3, 2)});
    PoolPlan plan;
    ASSERT_EQ(MakePoolPlan(desc, Isa::kGeneric, &plan), "");
    float src[4 * 16] = {}, dst[2 * 16];
    for (int x = 0; x < 4; ++x) src[x * 16] = -1.f - x * x;  // -1 -2 -5 -10
    memset(dst, 0xff, sizeof dst);
    PoolRef(plan, src, dst);
    EXPECT_EQ(dst[0], c.first);
    EXPECT_EQ(dst[16], c.second);
    for (int lane = 1; lane < 16; ++lane) EXPECT_EQ(dst[lane], 0.f);
  }
}

}  // namespace
}  // namespace bd
