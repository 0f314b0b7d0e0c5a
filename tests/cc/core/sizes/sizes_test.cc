// Every integer of every description at the edges of its type, in pairs and in threes: a plan is
// refused in one line, or what it counts and takes is within bounds. With UBSan (make test-asan)
// nothing on the way overflows either.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "cc/base/size.h"
#include "cc/core/attention/attention.h"
#include "cc/core/concat/concat.h"
#include "cc/core/conv/backward_weights/backward_weights.h"
#include "cc/core/conv/conv.h"
#include "cc/core/conv/conv_depthwise/conv_depthwise.h"
#include "cc/core/conv/conv_transpose/conv_transpose.h"
#include "cc/core/conv/conv_volume/conv_volume.h"
#include "cc/core/eltwise/eltwise.h"
#include "cc/core/gemm/gemm.h"
#include "cc/core/normalization/batch_norm.h"
#include "cc/core/normalization/layer_norm.h"
#include "cc/core/pad/pad.h"
#include "cc/core/pool/pool.h"
#include "cc/core/reorder/reorder.h"
#include "cc/core/resize/resize.h"
#include "cc/core/rnn/rnn_grad.h"
#include "cc/core/shuffle/shuffle.h"
#include "cc/core/softmax/softmax.h"
#include "cc/core/squeeze_excite/squeeze_excite.h"
#include "tests/cc/isas.h"

namespace bd {
namespace {

constexpr int64_t kEdges[] = {
    0, 1, -1, int64_t{1} << 15, int64_t{1} << 16, int64_t{1} << 30, INT32_MAX, int64_t{1} << 40};
constexpr DataType kF32 = DataType::f32;

// What stands in a plan, bytes or units.
using Counts = std::vector<int64_t>;
using Values = std::vector<int64_t>;
// The complaint about a description of these values; `turn` picks among kinds of it.
using PlanOf = std::string (*)(const Values& values, int turn, Counts* counts);

class Tries {
 public:
  explicit Tries(PlanOf plan) : plan_(plan) {}
  ~Tries() {
    EXPECT_GT(planned_, 0);
    EXPECT_GT(refused_, 0);
  }

  void Try(const Values& values) {
    Counts counts;
    const std::string error = plan_(values, turn_++, &counts);
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
    ++(error.empty() ? planned_ : refused_);
    if (!error.empty()) return;
    for (int64_t count : counts) EXPECT_TRUE(Size(count).fits()) << count << Text(values);
  }

 private:
  static std::string Text(const Values& values) {
    std::string text = " of";
    for (int64_t value : values) text += " " + std::to_string(value);
    return text;
  }

  const PlanOf plan_;
  int turn_ = 0, planned_ = 0, refused_ = 0;
};

// The values of `usual`, with two or, of these one in `every`, three of them at the edges.
void TryEdges(const Values& usual, PlanOf plan, int every = 1) {
  Tries tries(plan);
  const size_t n = usual.size();
  int turn = 0;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i + 1; j < n; ++j) {
      for (size_t k = j; k < n; ++k) {
        for (int64_t a : kEdges) {
          for (int64_t b : kEdges) {
            Values values = usual;
            values[i] = a;
            values[j] = b;
            if (k == j) {
              tries.Try(values);
              continue;
            }
            for (int64_t c : kEdges) {
              values[k] = c;
              if (turn++ % every == 0) tries.Try(values);
            }
          }
        }
      }
    }
  }
}

Isa IsaOf(int turn) {
  static const std::vector<Isa> isas = TestIsas(Isa::kAvx512Bf16, true);
  return isas[turn % isas.size()];
}
int ThreadsOf(int turn) { return turn % 3 == 0 ? 1 : turn % 3 == 1 ? 2 : 1024; }

void Add(const ScratchBook& scratch, Counts* counts) {
  counts->push_back(scratch.bytes());
  for (const ScratchBook::Entry& entry : scratch.entries()) {
    counts->insert(counts->end(), {entry.offset, entry.bytes, entry.copies});
  }
}

void Add(const ConvPlan& plan, Counts* counts) {
  counts->insert(counts->end(), {plan.packed_bytes, plan.tasks});
  Add(plan.scratch, counts);
}

enum {
  kN,
  kIc,
  kIh,
  kIw,
  kOc,
  kKh,
  kKw,
  kSh,
  kSw,
  kDh,
  kDw,
  kTop,
  kBottom,
  kLeft,
  kRight,
  kGroups
};
const Values kUsualConv = {1, 16, 8, 8, 16, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1};

// As the op's shape function makes it.
std::string Describe(const Values& v, DataType src, DataType dst, Layout src_layout,
                     Layout dst_layout, ConvDesc* d) {
  d->windows.h = {v[kIh], v[kKh], v[kSh], v[kDh], v[kTop], v[kBottom], 0};
  d->windows.w = {v[kIw], v[kKw], v[kSw], v[kDw], v[kLeft], v[kRight], 0};
  std::string error = ResolveWindows(Padding::kExplicit, &d->windows);
  if (error.empty())
    error = TensorView::Make(src, src_layout, {v[kN], v[kIc], v[kIh], v[kIw]}, 0, &d->src);
  if (error.empty())
    error = TensorView::Make(dst, dst_layout, {v[kN], v[kOc], d->oh(), d->ow()}, 0, &d->dst);
  d->groups = v[kGroups];
  return error;
}

std::string PlanConvOf(const Values& v, int turn, Counts* counts) {
  constexpr DataType kTypes[][3] = {{kF32, kF32, kF32},
                                    {kF32, kF32, kF32},
                                    {DataType::bf16, DataType::bf16, DataType::bf16},
                                    {DataType::u8, DataType::s8, DataType::u8}};
  constexpr ConvAlgorithm kAlgorithms[] = {ConvAlgorithm::kAuto, ConvAlgorithm::kDirect,
                                           ConvAlgorithm::kWinograd, ConvAlgorithm::kFip,
                                           ConvAlgorithm::kAutoSmall};
  const auto& types = kTypes[turn % 4];
  const Layout src = turn / 4 % 3 == 2 ? Layout::nhwc : Layout::nChw16c;
  const Layout dst = turn / 12 % 3 == 2 ? Layout::nhwc : Layout::nChw16c;
  ConvDesc d;
  d.types.weights = types[1];
  d.algorithm = kAlgorithms[turn % 5];
  d.keeps_weights = turn % 7 == 0;
  d.changes_weights = d.hands_plain = turn % 7 == 1;
  if (std::string error = Describe(v, types[0], types[2], src, dst, &d); !error.empty())
    return error;
  ConvPlan plan;
  const std::string error = MakeConvPlan(d, IsaOf(turn), ThreadsOf(turn), &plan);
  if (error.empty()) Add(plan, counts);
  return error;
}

TEST(Sizes, Convolution) { TryEdges(kUsualConv, PlanConvOf, 3); }

TEST(Sizes, ConvolutionOfManyPixelsToOneChannel) {
  TryEdges({1, 1, 100, 1000, 1, 1, 5, 1, 2, 1, 1, 0, 0, 2, 2, 1}, PlanConvOf, 7);
}

TEST(Sizes, DepthwiseConvolution) {
  TryEdges({1, 32, 9, 9, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
           [](const Values& v, int turn, Counts* counts) {
             Values all = {v[0], v[1], v[2], v[3], v[1]};
             all.insert(all.end(), v.begin() + 4, v.end());
             all.push_back(v[1]);
             return PlanConvOf(all, turn, counts);
           });
}

TEST(Sizes, GradientOfWeights) {  // whose plans are longer lists
  // Images, channels, height, width, channels of ddst, kernel, stride, dilation, padding, groups.
  TryEdges(
      {1, 16, 8, 8, 16, 3, 1, 1, 1, 1},
      [](const Values& v, int turn, Counts* counts) {
        ConvDesc d;
        const Layout layout = turn % 2 == 0 ? Layout::nChw16c : Layout::nhwc;
        std::string error = Describe(
            {v[0], v[1], v[2], v[3], v[4], v[5], 3, v[6], v[6], v[7], 1, v[8], v[8], 1, 1, v[9]},
            kF32, kF32, layout, layout, &d);
        BackwardWeightsPlan plan;
        if (error.empty()) {
          error = MakeBackwardWeightsPlan(d, IsaOf(turn), ThreadsOf(turn), &plan);
        }
        if (error.empty()) Add(plan.scratch, counts);
        return error;
      },
      101);
}

TEST(Sizes, PointwiseThenDepthwiseConvolution) {
  // Images, channels, height, width, and the depthwise window.
  TryEdges(
      {1, 16, 96, 14, 14, 3, 3, 1, 1, 1, 1, 1, 1},
      [](const Values& v, int turn, Counts* counts) {
        ConvDesc first, depthwise;
        std::string error =
            Describe({v[0], v[1], v[3], v[4], v[2], 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1}, kF32, kF32,
                     Layout::nChw16c, Layout::nChw16c, &first);
        if (error.empty()) {
          error = Describe({v[0], v[2], v[3], v[4], v[2], v[5], v[6], v[7], v[8], v[9], v[10],
                            v[11], v[11], v[12], v[12], v[2]},
                           kF32, kF32, Layout::nChw16c, Layout::nChw16c, &depthwise);
        }
        ConvDepthwisePlan plan;
        if (error.empty()) {
          error = MakeConvDepthwisePlan(first, depthwise, IsaOf(turn), ThreadsOf(turn), &plan);
        }
        if (error.empty()) Add(plan.scratch, counts);
        return error;
      },
      101);
}

TEST(Sizes, TransposedConvolution) {
  // n, ic, ih, iw, oc, oh, ow, kernel, strides, crops
  TryEdges(
      {1, 16, 8, 8, 16, 16, 16, 4, 4, 2, 2, 1, 1},
      [](const Values& v, int turn, Counts* counts) {
        ConvTransposeDesc d;
        std::string error =
            TensorView::Make(kF32, Layout::nChw16c, {v[0], v[1], v[2], v[3]}, 0, &d.src);
        if (error.empty()) {
          error =
              TensorView::Make(kF32, v[4] < 16 && turn % 2 == 0 ? Layout::nhwc : Layout::nChw16c,
                               {v[0], v[4], v[5], v[6]}, 0, &d.dst);
        }
        d.kh = v[7], d.kw = v[8], d.sh = v[9], d.sw = v[10], d.pad_top = v[11], d.pad_left = v[12];
        d.algorithm = turn % 4 == 0 ? ConvAlgorithm::kDirect : ConvAlgorithm::kAuto;
        ConvTransposePlan plan;
        if (error.empty()) error = MakeConvTransposePlan(d, IsaOf(turn), ThreadsOf(turn), &plan);
        if (error.empty()) Add(plan.scratch, counts), counts->push_back(plan.packed_bytes);
        return error;
      },
      11);
}

TEST(Sizes, ConvolutionOfVolumes) {
  // volumes, depth, kd, sd, pad_front, ic, ih, iw, oc, kernel, stride, padding
  TryEdges({1, 4, 3, 1, 1, 16, 8, 8, 16, 3, 1, 1}, [](const Values& v, int turn, Counts* counts) {
    ConvVolumeDesc d;
    Window1d depth = {v[1], v[2], v[3], 1, v[4], v[4], 0};
    std::string error = ResolveWindow(Padding::kExplicit, &depth);
    d.volumes = v[0], d.depth = v[1], d.kd = v[2], d.sd = v[3], d.pad_front = v[4];
    d.out_depth = depth.out;
    const Layout layout = turn % 3 == 0 ? Layout::nhwc : Layout::nChw16c;
    const Size slices = Size(v[0]) * v[1], out = Size(v[0]) * depth.out;
    if (error.empty()) {
      error = Describe({slices.value(), v[5], v[6], v[7], v[8], v[9], v[9], v[10], v[10], 1, 1,
                        v[11], v[11], v[11], v[11], 1},
                       kF32, kF32, layout, Layout::nChw16c, &d.slice);
    }
    if (error.empty()) {
      error = TensorView::Make(kF32, Layout::nChw16c,
                               {out.value(), v[8], d.slice.oh(), d.slice.ow()}, 0, &d.slice.dst);
    }
    ConvVolumePlan plan;
    if (error.empty()) error = MakeConvVolumePlan(d, IsaOf(turn), ThreadsOf(turn), &plan);
    if (error.empty()) Add(plan.scratch, counts), Add(plan.conv, counts);
    return error;
  });
}

TEST(Sizes, Pooling) {
  TryEdges({1, 16, 8, 8, 3, 3, 2, 2, 1, 1}, [](const Values& v, int turn, Counts* counts) {
    PoolDesc d;
    d.kind = turn % 2 == 0 ? PoolKind::kMax : PoolKind::kAvg;
    d.windows.h = {v[2], v[4], v[6], 1, v[8], v[8], 0};
    d.windows.w = {v[3], v[5], v[7], 1, v[9], v[9], 0};
    std::string error = ResolveWindows(Padding::kExplicit, &d.windows);
    const DataType type = turn % 3 == 0 ? DataType::u8 : turn % 3 == 1 ? DataType::bf16 : kF32;
    if (error.empty()) {
      error = TensorView::Make(type, Layout::nChw16c, {v[0], v[1], v[2], v[3]}, 0, &d.src);
    }
    if (error.empty() && turn % 5 == 0) d = PoolDesc::Global(d.kind, d.src, Layout::nChw16c);
    if (error.empty() && turn % 5 != 0) {
      error = TensorView::Make(type, Layout::nChw16c,
                               {v[0], v[1], d.windows.h.out, d.windows.w.out}, 0, &d.dst);
    }
    PoolPlan plan;
    PoolGradPlan grad;
    if (error.empty()) error = MakePoolPlan(d, IsaOf(turn), &plan);
    if (error.empty()) {
      *counts = {plan.units, plan.tasks, plan.inner_begin, plan.inner_end};
      MakePoolGradPlan(d, IsaOf(turn), &grad);
    }
    return error;
  });
}

TEST(Sizes, Gemm) {
  TryEdges({9, 40, 70}, [](const Values& v, int turn, Counts* counts) {
    GemmDesc d;
    d.k = v[1];
    d.n = v[2];
    d.b = turn % 3 == 0 ? kF32 : turn % 3 == 1 ? DataType::bf16 : DataType::s8;
    d.widens = d.b != kF32 && turn % 2 == 0;
    d.pairs = turn % 5 == 0;
    d.threads = ThreadsOf(turn);
    GemmPlan plan;
    if (v[0] < 0) return std::string("rows are negative");
    const std::string error = MakeGemmPlan(d, IsaOf(turn), &plan);
    if (!error.empty()) return error;
    *counts = {plan.packed_bytes, plan.widened_floats, plan.unscale, plan.terms, plan.sums};
    const int64_t bytes = GemmScratchBytes(plan, v[0]);
    if (!Size(bytes).fits()) return std::string("its caller refuses it");
    counts->push_back(bytes);
    return error;
  });
}

TEST(Sizes, Attention) {
  TryEdges({2, 8, 8, 9, 17, 64, 64}, [](const Values& v, int turn, Counts* counts) {
    AttentionDesc d;
    d.batch = v[0], d.heads = v[1], d.kv_heads = v[2], d.queries = v[3], d.keys = v[4];
    d.head_size = v[5], d.value_size = v[6];
    d.causal = turn % 2 == 0;
    AttentionPlan plan;
    const std::string error = MakeAttentionPlan(d, IsaOf(turn), ThreadsOf(turn), &plan);
    if (error.empty()) Add(plan.scratch, counts), counts->push_back(plan.tasks);
    return error;
  });
}

TEST(Sizes, Rnn) {
  TryEdges({3, 7, 20, 30}, [](const Values& v, int turn, Counts* counts) {
    for (int kind = turn % 9; kind < 36; kind += 9) {
      RnnDesc d;
      d.batch = v[0], d.steps = v[1], d.inputs = v[2], d.units = v[3];
      d.cell = static_cast<RnnCell>(kind % 3);
      d.weights = kind / 3 % 3 == 0 ? kF32 : kind / 3 % 3 == 1 ? DataType::bf16 : DataType::s8;
      d.training = kind / 9 % 2 == 1 && d.weights == kF32;
      d.reset_after = kind / 18 == 0;
      RnnPlan plan;
      std::string error = MakeRnnPlan(d, IsaOf(turn), ThreadsOf(turn), &plan);
      if (error.empty()) {
        Add(plan.scratch, counts);
        counts->insert(counts->end(),
                       {static_cast<int64_t>(plan.workspace_bytes), plan.packed_floats});
        RnnGradPlan grad;
        if (d.training) error = MakeRnnGradPlan(d, IsaOf(turn), ThreadsOf(turn), &grad);
      }
      if (!error.empty()) return error;
    }
    return std::string();
  });
}

TEST(Sizes, ElementWise) {
  TryEdges({1, 16, 8, 8}, [](const Values& v, int turn, Counts* counts) {
    EltwiseDesc d;
    const Layout layout = turn % 2 == 0 ? Layout::nhwc : Layout::nChw16c;
    std::string error = TensorView::Make(kF32, layout, {v[0], v[1], v[2], v[3]}, 0, &d.src);
    d.dst = d.src;
    EltwisePlan plan;
    if (error.empty()) error = MakeEltwisePlan(d, IsaOf(turn), &plan);
    if (error.empty()) *counts = {plan.tasks, plan.total_floats, plan.segment_floats};
    return error;
  });
}

TEST(Sizes, Concatenation) {
  TryEdges({1, 16, 24, 8, 8}, [](const Values& v, int turn, Counts* counts) {
    ConcatDesc d;
    d.srcs.resize(2);
    std::string error;
    for (int i : {0, 1}) {
      if (!error.empty()) continue;
      error = TensorView::Make(kF32, Layout::nChw16c, {v[0], v[1 + i], v[3], v[4]}, 0, &d.srcs[i]);
    }
    if (error.empty()) {
      error = TensorView::Make(kF32, Layout::nChw16c, {v[0], v[1] + v[2], v[3], v[4]}, 0, &d.dst);
    }
    ConcatPlan plan;
    if (error.empty()) error = MakeConcatPlan(d, IsaOf(turn), &plan);
    if (error.empty()) *counts = {plan.tasks, plan.chunks};
    return error;
  });
}

TEST(Sizes, Padding) {
  TryEdges({3, 8, 8, 1, 1, 1, 1}, [](const Values& v, int, Counts* counts) {
    PadPlan plan;
    const std::string error = MakePadPlan({v[0], v[1], v[2], v[3], v[4], v[5], v[6], {}}, &plan);
    if (error.empty()) *counts = {plan.tasks, plan.zeros_before, plan.copied};
    return error;
  });
}

TEST(Sizes, Resizing) {
  TryEdges({1, 16, 8, 8, 16, 16}, [](const Values& v, int turn, Counts* counts) {
    ResizeDesc d;
    d.kind = turn % 2 == 0 ? ResizeKind::kNearest : ResizeKind::kBilinear;
    d.coordinates = static_cast<ResizeCoordinates>(turn % 3);
    std::string error =
        TensorView::Make(kF32, Layout::nChw16c, {v[0], v[1], v[2], v[3]}, 0, &d.src);
    if (error.empty()) {
      error = TensorView::Make(kF32, Layout::nChw16c, {v[0], v[1], v[4], v[5]}, 0, &d.dst);
    }
    ResizePlan plan;
    if (error.empty()) error = MakeResizePlan(d, IsaOf(turn), &plan);
    if (error.empty()) *counts = {plan.tasks, plan.units};
    return error;
  });
}

TEST(Sizes, Reordering) {
  // dims, and where src is not in a layout, its strides and offset
  TryEdges({2, 17, 5, 4, 400, 20, 4, 1, 0}, [](const Values& v, int turn, Counts* counts) {
    ReorderDesc d;
    const Dims dims = {v[0], v[1], v[2], v[3]};
    const bool strided = turn % 2 == 0;
    std::string error =
        strided ? TensorDesc::Make(dims, kF32, {}, {v[4], v[5], v[6], v[7]}, v[8], &d.src)
                : TensorDesc::Make(dims, kF32, Layout::nhwc, {}, 0, &d.src);
    const Layout to = turn / 2 % 2 == 0 ? Layout::nChw16c : Layout::nchw;
    if (error.empty()) error = TensorDesc::Make(dims, DataType::s8, to, {}, 0, &d.dst);
    ReorderPlan plan;
    if (error.empty()) error = MakeReorderPlan(d, IsaOf(turn), &plan);
    if (error.empty()) *counts = {plan.tasks, d.src.size_bytes(), d.dst.size_bytes()};
    return error;
  });
}

TEST(Sizes, Shuffling) {
  TryEdges({2, 32, 6, 4}, [](const Values& v, int turn, Counts* counts) {
    ShuffleDesc d;
    d.outer = v[0], d.channels = v[1], d.inner = v[2], d.group = v[3];
    d.block = turn % 3 == 0 ? 16 : turn % 3 == 1 ? 8 : 1;
    d.element_bytes = 1 << turn % 4;
    ShufflePlan plan;
    const std::string error = MakeShufflePlan(d, IsaOf(turn), &plan);
    if (error.empty()) *counts = {plan.tasks, plan.units, d.size_bytes()};
    return error;
  });
}

TEST(Sizes, Softmax) {
  TryEdges({9, 10}, [](const Values& v, int turn, Counts* counts) {
    SoftmaxPlan plan;
    const std::string error = MakeSoftmaxPlan({v[0], v[1]}, IsaOf(turn), &plan);
    if (error.empty()) *counts = {plan.tasks};
    return error;
  });
}

TEST(Sizes, Normalisation) {
  TryEdges({2, 9, 40}, [](const Values& v, int turn, Counts* counts) {
    LayerNormGradPlan plan;
    const LayerNormDesc d = {v[0], v[1], v[2], turn % 2 == 0, 0.1f, true};
    const std::string error = MakeLayerNormGradPlan(d, IsaOf(turn), &plan);
    if (!error.empty()) return error;
    *counts = {plan.tasks.tasks_per_image, plan.tasks.pixels_per_task};
    Add(plan.scratch, counts);
    const BatchNormPlan batch =
        MakeBatchNormPlan({v[0], v[2], v[1], 0.1f}, IsaOf(turn), ThreadsOf(turn));
    if (batch.scratch.Check().empty()) Add(batch.scratch, counts);
    return error;
  });
}

TEST(Sizes, SqueezeAndExcitation) {
  TryEdges({2, 40, 7, 7, 10}, [](const Values& v, int turn, Counts* counts) {
    SqueezeExciteDesc d;
    std::string error =
        TensorView::Make(kF32, Layout::nChw16c, {v[0], v[1], v[2], v[3]}, 0, &d.src);
    d.squeezed = v[4];
    d.scale_src = turn % 2 == 0;
    if (error.empty()) {
      error = d.scale_src ? TensorView::Make(kF32, Layout::nChw16c, d.src.dims(), 0, &d.dst)
                          : TensorView::Make(kF32, Layout::nhwc, {v[0], v[1], 1, 1}, 0, &d.dst);
    }
    SqueezeExcitePlan plan;
    if (error.empty()) error = MakeSqueezeExcitePlan(d, IsaOf(turn), ThreadsOf(turn), &plan);
    if (!error.empty()) return error;
    *counts = {plan.reduce.tasks, plan.reduce.splits, plan.expand.tasks, plan.expand.splits};
    Add(plan.scratch, counts);
    return error;
  });
}

}  // namespace
}  // namespace bd
