// 3-D convolution on every ISA, as its definition where sums are exact. Tensors sit in guarded
// buffers over garbage memory: an access beyond an end is a crash.
#include "cc/core/conv/conv_volume/conv_volume.h"

#include <gtest/gtest.h>

#include "cc/base/threads/thread_pool.h"
#include "tests/cc/core/conv/conv_ref.h"
#include "tests/cc/isas.h"

namespace bd {
namespace {

std::vector<double> Sums(const ConvVolumeDesc& d, const float* src, const float* weights, int64_t v,
                         int64_t z, int64_t y, int64_t x) {
  const int64_t slice_weights = d.weights_bytes() / d.kd / int64_t{sizeof(float)};
  std::vector<double> sums(d.slice.oc());
  for (int64_t k = 0; k < d.kd; ++k) {
    const int64_t slice = z * d.sd + k - d.pad_front;
    if (slice < 0 || slice >= d.depth) continue;
    ForProducts(d.slice, v * d.depth + slice, y, x, [&](int64_t o, int64_t at, int64_t weight) {
      sums[o] += double{src[at]} * weights[k * slice_weights + weight];
    });
  }
  return sums;
}

// A 3-D convolution by its sizes, of which the description follows.
struct VolumeShape {
  int64_t volumes = 1, depth = 1, out_depth = 1;
  int64_t kd = 1, sd = 1, pad_front = 0;
  ConvShape slice;

  operator ConvVolumeDesc() const {
    const auto slices = [](const TensorView& view, int64_t n) {
      return TensorView(view.dtype(), view.layout(), {n, view.c(), view.h(), view.w()});
    };
    ConvVolumeDesc d;
    d.volumes = volumes;
    d.depth = depth;
    d.out_depth = out_depth;
    d.kd = kd;
    d.sd = sd;
    d.pad_front = pad_front;
    d.slice = slice;
    d.slice.src = slices(d.slice.src, volumes * depth);
    d.slice.dst = slices(d.slice.dst, volumes * out_depth);
    return d;
  }
};

VolumeShape Cube(int64_t ic, int64_t size, int64_t oc, int64_t k, int64_t stride, int64_t pad) {
  VolumeShape d;
  d.slice = Square(ic, size, oc, k, stride, pad);
  d.depth = size;
  d.kd = k;
  d.sd = stride;
  d.pad_front = pad;
  d.out_depth = d.slice.oh;
  return d;
}

class ConvVolumeOnEveryIsa : public testing::TestWithParam<Isa> {
 protected:
  void Check(const VolumeShape& d, double tolerance, GuardedBuffer::Guard guard) {
    ConvVolumePlan plan;
    ASSERT_EQ(MakeConvVolumePlan(d, GetParam(), pool_.num_threads(), &plan), "");
    const ConvShape& s = d.slice;
    SCOPED_TRACE(testing::Message()
                 << "volumes " << d.volumes << " depth " << d.depth << "->" << d.out_depth << " k"
                 << d.kd << " s" << d.sd << " p" << d.pad_front << " " << Describe(s, plan.conv));
    const int64_t slices = d.volumes * d.depth, results = d.volumes * d.out_depth;
    GuardedBuffer src(TensorFloats(s.src_layout, slices, s.ic, s.ih, s.iw), guard);
    GuardedBuffer weights(d.kd * WeightFloats(s), guard), channel(s.oc, guard);
    const int64_t floats = TensorFloats(s.dst_layout, results, s.oc, s.oh, s.ow);
    GuardedBuffer tensor(floats, guard), expected(floats), dst(floats, guard);
    GuardedBuffer sample(TensorFloats(s.dst_layout, results, s.oc, 1, 1), guard);
    src.FillIntegers(1);
    const ConvVolumeDesc desc = d;
    ClearTails(desc.slice.src, src.data());
    weights.FillIntegers(2);
    channel.FillIntegers(3);
    tensor.FillIntegers(4);
    sample.FillIntegers(5);
    ClearTails(desc.slice.dst, tensor.data());
    ClearTails(TensorView(DataType::f32, s.dst_layout, {results, s.oc, 1, 1}), sample.data());
    const float* args[] = {channel.data(), tensor.data(), sample.data()};
    ResultsRef(
        desc.slice.dst, s.post_ops, args, expected.data(), [&](int64_t n, int64_t y, int64_t x) {
          return Sums(desc, src.data(), weights.data(), n / d.out_depth, n % d.out_depth, y, x);
        });
    GuardedBuffer packed(plan.conv.packed_bytes / 4);
    PackConvVolumeWeights(plan, weights.data(), packed.data(), pool_);
    GuardedBuffer scratch(plan.scratch.bytes() / 4);
    RunConvVolume(
        plan, {src.data(), packed.data(), args, dst.data(), scratch.data(), weights.data()}, pool_);
    ExpectClose(dst, expected, tolerance);
  }
  void CheckBothEnds(VolumeShape d) {
    d.slice.algorithm = ConvAlgorithm::kDirect;
    Check(d, 0, GuardedBuffer::kAtStart);
    Check(d, 0, GuardedBuffer::kAtEnd);
  }
  ThreadPool pool_{2};
};

INSTANTIATE_TEST_SUITE_P(Isas, ConvVolumeOnEveryIsa, testing::ValuesIn(TestIsas()), IsaParam);

TEST_P(ConvVolumeOnEveryIsa, WindowsStridesAndPaddings) {
  for (int64_t k = 1; k <= 3; ++k) {
    for (int64_t stride = 1; stride <= 2; ++stride) {
      for (int64_t pad = 0; pad < k; ++pad) {
        for (int64_t ic : {16, 24}) {
          VolumeShape d = Cube(ic, 5, 20, k, stride, pad);
          d.volumes = 2;
          CheckBothEnds(d);
        }
      }
    }
  }
}

// First layers read plain volumes, last ones write them.
TEST_P(ConvVolumeOnEveryIsa, PlainVolumes) {
  for (int64_t ic : {1, 3}) {
    for (int64_t pad : {0, 1}) {
      VolumeShape d = Cube(ic, 6, 16, 3, 1, pad);
      d.volumes = 2;
      d.slice.src_layout = Layout::nhwc;
      CheckBothEnds(d);
      d.slice.oc = 2;
      d.slice.dst_layout = Layout::nhwc;
      CheckBothEnds(d);
    }
  }
}

// Products of matrices, which read the weights as they are.
TEST_P(ConvVolumeOnEveryIsa, VolumesOfOnePixel) {
  for (const int64_t kd : {1, 2}) {
    for (const Layout dst_layout : {Layout::nhwc, Layout::nChw16c}) {
      VolumeShape d = Cube(20, 1, 24, 1, 1, 0);
      d.volumes = 2;
      d.depth = d.kd = kd;
      d.slice.src_layout = Layout::nhwc;
      d.slice.dst_layout = dst_layout;
      CheckBothEnds(d);
      d.slice.algorithm = ConvAlgorithm::kAuto;
      Check(d, 0, GuardedBuffer::kAtEnd);
    }
  }
}

// Operands belong to the volume that is computed.
TEST_P(ConvVolumeOnEveryIsa, Chains) {
  for (const char* chain : {"binary(add,channel,#0);eltwise(relu)", "sum(#1);eltwise(relu)",
                            "binary(mul,sample_channel,#2);binary(sub,tensor,#1)"}) {
    VolumeShape d = Cube(16, 4, 24, 3, 1, 1);
    d.volumes = 3;
    d.slice.post_ops = Chain(chain);
    CheckBothEnds(d);
  }
}

TEST_P(ConvVolumeOnEveryIsa, AnyAlgorithm) {
  VolumeShape d = Cube(32, 14, 32, 3, 1, 1);
  Check(d, 1e-5, GuardedBuffer::kAtEnd);
  d.slice.algorithm = ConvAlgorithm::kWinograd;
  Check(d, 1e-5, GuardedBuffer::kAtEnd);
}

TEST(ConvVolumePlan, SaysWhatItDoesNotTake) {
  ConvVolumePlan plan;
  VolumeShape d = Cube(16, 4, 16, 3, 1, 1);
  d.slice.post_ops = Chain("sum()");
  EXPECT_NE(MakeConvVolumePlan(d, Isa::kGeneric, 1, &plan), "");
  d.slice.post_ops = Chain("binary(add,channel,#0);sum(#0)");
  EXPECT_NE(MakeConvVolumePlan(d, Isa::kGeneric, 1, &plan), "");
  d.slice.post_ops = Chain("");
  d.slice.groups = 2;
  EXPECT_NE(MakeConvVolumePlan(d, Isa::kGeneric, 1, &plan), "");
}

}  // namespace
}  // namespace bd
