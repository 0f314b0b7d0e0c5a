// Every integer of every description at the edges of its type, in pairs and in threes: a plan is
// refused in one line, or what it counts and takes is within bounds. With UBSan (make test-asan)
// nothing on the way overflows either.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
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
#include "tests/cc/layouts.h"

namespace bd {
namespace {

constexpr int64_t kEdges[] = {
    0, 1, -1, int64_t{1} << 15, int64_t{1} << 16, int64_t{1} << 30, INT32_MAX, int64_t{1} << 40};
constexpr DataType kF32 = DataType::f32;

// What stands in a plan, bytes or units.
using Counts = std::vector<int64_t>;
using Values = std::vector<int64_t>;
// A plan of these values; `turn` picks among kinds of it.
using PlanOf = Counts (*)(const Values& values, int turn);

struct Refused {
  std::string why;
};
void Check(const std::string& error) {
  if (!error.empty()) throw Refused{error};
}

class Tries {
 public:
  explicit Tries(PlanOf plan) : plan_(plan) {}
  ~Tries() {
    EXPECT_GT(planned_, 0);
    EXPECT_GT(refused_, 0);
  }

  void Try(const Values& values) {
    try {
      for (int64_t count : plan_(values, turn_++)) {
        EXPECT_TRUE(Size(count).fits()) << count << " of " << testing::PrintToString(values);
      }
      ++planned_;
    } catch (const Refused& refused) {
      EXPECT_EQ(refused.why.find('\n'), std::string::npos) << refused.why;
      ++refused_;
    }
  }

 private:
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

// With those of its scratch.
Counts With(const ScratchBook& scratch, Counts counts) {
  counts.push_back(scratch.bytes());
  for (const ScratchBook::Entry& entry : scratch.entries()) {
    counts.insert(counts.end(), {entry.offset, entry.bytes, entry.copies});
  }
  return counts;
}

TensorView View(DataType type, Layout layout, const Dims& dims) {
  TensorView view;
  Check(TensorView::Make(type, layout, dims, 0, &view));
  return view;
}
TensorView Blocked(const Dims& dims) { return View(kF32, Layout::nChw16c, dims); }

enum { kN, kIc, kIh, kIw, kOc, kKh, kKw, kSh, kSw };
enum { kDh = kSw + 1, kDw, kTop, kBottom, kLeft, kRight, kGroups };
const Values kUsualConv = {1, 16, 8, 8, 16, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1};

// As the op's shape function makes it.
ConvDesc Describe(const Values& v, DataType src = kF32, DataType dst = kF32,
                  Layout src_layout = Layout::nChw16c, Layout dst_layout = Layout::nChw16c) {
  ConvDesc d;
  d.windows.h = {v[kIh], v[kKh], v[kSh], v[kDh], v[kTop], v[kBottom], 0};
  d.windows.w = {v[kIw], v[kKw], v[kSw], v[kDw], v[kLeft], v[kRight], 0};
  Check(ResolveWindows(Padding::kExplicit, &d.windows));
  d.src = View(src, src_layout, {v[kN], v[kIc], v[kIh], v[kIw]});
  d.dst = View(dst, dst_layout, {v[kN], v[kOc], d.oh(), d.ow()});
  d.groups = v[kGroups];
  return d;
}

Counts PlanConvOf(const Values& v, int turn) {
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
  ConvDesc d = Describe(v, types[0], types[2], src, dst);
  d.types.weights = types[1];
  d.algorithm = kAlgorithms[turn % 5];
  d.keeps_weights = turn % 7 == 0;
  d.changes_weights = d.hands_plain = turn % 7 == 1;
  ConvPlan plan;
  Check(MakeConvPlan(d, IsaOf(turn), ThreadsOf(turn), &plan));
  return With(plan.scratch, {plan.packed_bytes, plan.tasks});
}

TEST(Sizes, Convolution) { TryEdges(kUsualConv, PlanConvOf, 3); }

TEST(Sizes, ConvolutionOfManyPixelsToOneChannel) {
  TryEdges({1, 1, 100, 1000, 1, 1, 5, 1, 2, 1, 1, 0, 0, 2, 2, 1}, PlanConvOf, 7);
}

TEST(Sizes, DepthwiseConvolution) {
  TryEdges({1, 32, 9, 9, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1}, [](const Values& v, int turn) {
    Values all = {v[0], v[1], v[2], v[3], v[1]};
    all.insert(all.end(), v.begin() + 4, v.end());
    all.push_back(v[1]);
    return PlanConvOf(all, turn);
  });
}

TEST(Sizes, GradientOfWeights) {  // whose plans are longer lists
  // Images, channels, height, width, channels of ddst, kernel, stride, dilation, padding, groups.
  TryEdges(
      {1, 16, 8, 8, 16, 3, 1, 1, 1, 1},
      [](const Values& v, int turn) {
        const Layout layout = turn % 2 == 0 ? Layout::nChw16c : Layout::nhwc;
        const ConvDesc d = Describe(
            {v[0], v[1], v[2], v[3], v[4], v[5], 3, v[6], v[6], v[7], 1, v[8], v[8], 1, 1, v[9]},
            kF32, kF32, layout, layout);
        BackwardWeightsPlan plan;
        Check(MakeBackwardWeightsPlan(d, IsaOf(turn), ThreadsOf(turn), &plan));
        return With(plan.scratch, {});
      },
      101);
}

TEST(Sizes, PointwiseThenDepthwiseConvolution) {
  // Images, channels, height, width, and the depthwise window.
  TryEdges(
      {1, 16, 96, 14, 14, 3, 3, 1, 1, 1, 1, 1, 1},
      [](const Values& v, int turn) {
        const ConvDesc first =
            Describe({v[0], v[1], v[3], v[4], v[2], 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1});
        const ConvDesc depthwise = Describe({v[0], v[2], v[3], v[4], v[2], v[5], v[6], v[7], v[8],
                                             v[9], v[10], v[11], v[11], v[12], v[12], v[2]});
        ConvDepthwisePlan plan;
        Check(MakeConvDepthwisePlan(first, depthwise, IsaOf(turn), ThreadsOf(turn), &plan));
        return With(plan.scratch, {});
      },
      101);
}

TEST(Sizes, TransposedConvolution) {
  // n, ic, ih, iw, oc, oh, ow, kernel, strides, crops
  TryEdges(
      {1, 16, 8, 8, 16, 16, 16, 4, 4, 2, 2, 1, 1},
      [](const Values& v, int turn) {
        ConvTransposeDesc d;
        d.src = Blocked({v[0], v[1], v[2], v[3]});
        d.dst = View(kF32, v[4] < 16 && turn % 2 == 0 ? Layout::nhwc : Layout::nChw16c,
                     {v[0], v[4], v[5], v[6]});
        d.kh = v[7], d.kw = v[8], d.sh = v[9], d.sw = v[10], d.pad_top = v[11], d.pad_left = v[12];
        d.algorithm = turn % 4 == 0 ? ConvAlgorithm::kDirect : ConvAlgorithm::kAuto;
        ConvTransposePlan plan;
        Check(MakeConvTransposePlan(d, IsaOf(turn), ThreadsOf(turn), &plan));
        return With(plan.scratch, {plan.packed_bytes});
      },
      11);
}

TEST(Sizes, ConvolutionOfVolumes) {
  // volumes, depth, kd, sd, pad_front, ic, ih, iw, oc, kernel, stride, padding
  TryEdges({1, 4, 3, 1, 1, 16, 8, 8, 16, 3, 1, 1}, [](const Values& v, int turn) {
    ConvVolumeDesc d;
    Window1d depth = {v[1], v[2], v[3], 1, v[4], v[4], 0};
    Check(ResolveWindow(Padding::kExplicit, &depth));
    d.volumes = v[0], d.depth = v[1], d.kd = v[2], d.sd = v[3], d.pad_front = v[4];
    d.out_depth = depth.out;
    const Layout layout = turn % 3 == 0 ? Layout::nhwc : Layout::nChw16c;
    const Size slices = Size(v[0]) * v[1], out = Size(v[0]) * depth.out;
    d.slice = Describe({slices.value(), v[5], v[6], v[7], v[8], v[9], v[9], v[10], v[10], 1, 1,
                        v[11], v[11], v[11], v[11], 1},
                       kF32, kF32, layout);
    d.slice.dst = Blocked({out.value(), v[8], d.slice.oh(), d.slice.ow()});
    ConvVolumePlan plan;
    Check(MakeConvVolumePlan(d, IsaOf(turn), ThreadsOf(turn), &plan));
    return With(plan.conv.scratch, With(plan.scratch, {plan.conv.packed_bytes, plan.conv.tasks}));
  });
}

TEST(Sizes, Pooling) {
  TryEdges({1, 16, 8, 8, 3, 3, 2, 2, 1, 1}, [](const Values& v, int turn) {
    PoolDesc d;
    d.kind = turn % 2 == 0 ? PoolKind::kMax : PoolKind::kAvg;
    d.windows.h = {v[2], v[4], v[6], 1, v[8], v[8], 0};
    d.windows.w = {v[3], v[5], v[7], 1, v[9], v[9], 0};
    Check(ResolveWindows(Padding::kExplicit, &d.windows));
    const DataType type = turn % 3 == 0 ? DataType::u8 : turn % 3 == 1 ? DataType::bf16 : kF32;
    d.src = View(type, Layout::nChw16c, {v[0], v[1], v[2], v[3]});
    if (turn % 5 == 0) {
      d = PoolDesc::Global(d.kind, d.src, Layout::nChw16c);
    } else {
      d.dst = View(type, Layout::nChw16c, {v[0], v[1], d.windows.h.out, d.windows.w.out});
    }
    PoolPlan plan;
    PoolGradPlan grad;
    Check(MakePoolPlan(d, IsaOf(turn), &plan));
    MakePoolGradPlan(d, IsaOf(turn), &grad);
    return Counts{plan.units, plan.tasks, plan.inner_begin, plan.inner_end};
  });
}

TEST(Sizes, Gemm) {
  TryEdges({9, 40, 70}, [](const Values& v, int turn) {
    GemmDesc d;
    d.k = v[1];
    d.n = v[2];
    d.b = turn % 3 == 0 ? kF32 : turn % 3 == 1 ? DataType::bf16 : DataType::s8;
    d.widens = d.b != kF32 && turn % 2 == 0;
    d.pairs = turn % 5 == 0;
    d.threads = ThreadsOf(turn);
    GemmPlan plan;
    if (v[0] < 0) throw Refused{"rows are negative"};
    Check(MakeGemmPlan(d, IsaOf(turn), &plan));
    const int64_t bytes = GemmScratchBytes(plan, v[0]);
    if (!Size(bytes).fits()) throw Refused{"its caller refuses it"};
    return Counts{plan.packed_bytes, plan.widened_floats, plan.unscale,
                  plan.terms,        plan.sums,           bytes};
  });
}

TEST(Sizes, Attention) {
  TryEdges({2, 8, 8, 9, 17, 64, 64}, [](const Values& v, int turn) {
    AttentionDesc d;
    d.batch = v[0], d.heads = v[1], d.kv_heads = v[2], d.queries = v[3], d.keys = v[4];
    d.head_size = v[5], d.value_size = v[6];
    d.causal = turn % 2 == 0;
    AttentionPlan plan;
    Check(MakeAttentionPlan(d, IsaOf(turn), ThreadsOf(turn), &plan));
    return With(plan.scratch, {plan.tasks});
  });
}

TEST(Sizes, Rnn) {
  TryEdges({3, 7, 20, 30}, [](const Values& v, int turn) {
    Counts counts;
    for (int kind = turn % 9; kind < 36; kind += 9) {
      RnnDesc d;
      d.batch = v[0], d.steps = v[1], d.inputs = v[2], d.units = v[3];
      d.cell = static_cast<RnnCell>(kind % 3);
      d.weights = kind / 3 % 3 == 0 ? kF32 : kind / 3 % 3 == 1 ? DataType::bf16 : DataType::s8;
      d.training = kind / 9 % 2 == 1 && d.weights == kF32;
      d.reset_after = kind / 18 == 0;
      RnnPlan plan;
      Check(MakeRnnPlan(d, IsaOf(turn), ThreadsOf(turn), &plan));
      counts = With(plan.scratch, std::move(counts));
      counts.insert(counts.end(), {static_cast<int64_t>(plan.workspace_bytes), plan.packed_floats});
      RnnGradPlan grad;
      if (d.training) Check(MakeRnnGradPlan(d, IsaOf(turn), ThreadsOf(turn), &grad));
    }
    return counts;
  });
}

TEST(Sizes, ElementWise) {
  TryEdges({1, 16, 8, 8}, [](const Values& v, int turn) {
    EltwiseDesc d;
    const Layout layout = turn % 2 == 0 ? Layout::nhwc : Layout::nChw16c;
    d.src = d.dst = View(kF32, layout, {v[0], v[1], v[2], v[3]});
    EltwisePlan plan;
    Check(MakeEltwisePlan(d, IsaOf(turn), &plan));
    return Counts{plan.tasks, plan.total_floats, plan.segment_floats};
  });
}

TEST(Sizes, Concatenation) {
  TryEdges({1, 16, 24, 8, 8}, [](const Values& v, int turn) {
    ConcatDesc d;
    for (int i : {1, 2}) d.srcs.push_back(Blocked({v[0], v[i], v[3], v[4]}));
    d.dst = Blocked({v[0], v[1] + v[2], v[3], v[4]});
    ConcatPlan plan;
    Check(MakeConcatPlan(d, IsaOf(turn), &plan));
    return Counts{plan.tasks, plan.chunks};
  });
}

TEST(Sizes, Padding) {
  TryEdges({3, 8, 8, 1, 1, 1, 1}, [](const Values& v, int) {
    PadPlan plan;
    Check(MakePadPlan({v[0], v[1], v[2], v[3], v[4], v[5], v[6], {}}, &plan));
    return Counts{plan.tasks, plan.zeros_before, plan.copied};
  });
}

TEST(Sizes, Resizing) {
  TryEdges({1, 16, 8, 8, 16, 16}, [](const Values& v, int turn) {
    ResizeDesc d;
    d.kind = turn % 2 == 0 ? ResizeKind::kNearest : ResizeKind::kBilinear;
    d.coordinates = static_cast<ResizeCoordinates>(turn % 3);
    d.src = Blocked({v[0], v[1], v[2], v[3]});
    d.dst = Blocked({v[0], v[1], v[4], v[5]});
    ResizePlan plan;
    Check(MakeResizePlan(d, IsaOf(turn), &plan));
    return Counts{plan.tasks, plan.units};
  });
}

TEST(Sizes, Reordering) {
  // dims, and where src is not in a layout, its strides and offset
  TryEdges({2, 17, 5, 4, 400, 20, 4, 1, 0}, [](const Values& v, int turn) {
    ReorderDesc d;
    const Dims dims = {v[0], v[1], v[2], v[3]};
    const bool strided = turn % 2 == 0;
    Check(strided ? TensorDesc::Make(dims, kF32, {}, {v[4], v[5], v[6], v[7]}, v[8], &d.src)
                  : TensorDesc::Make(dims, kF32, Layout::nhwc, {}, 0, &d.src));
    const Layout to = turn / 2 % 2 == 0 ? Layout::nChw16c : Layout::nchw;
    Check(TensorDesc::Make(dims, DataType::s8, to, {}, 0, &d.dst));
    ReorderPlan plan;
    Check(MakeReorderPlan(d, IsaOf(turn), &plan));
    return Counts{plan.tasks, d.src.size_bytes(), d.dst.size_bytes()};
  });
}

TEST(Sizes, Shuffling) {
  TryEdges({2, 32, 6, 4}, [](const Values& v, int turn) {
    ShuffleDesc d;
    d.outer = v[0], d.channels = v[1], d.inner = v[2], d.group = v[3];
    d.block = turn % 3 == 0 ? 16 : turn % 3 == 1 ? 8 : 1;
    d.element_bytes = 1 << turn % 4;
    ShufflePlan plan;
    Check(MakeShufflePlan(d, IsaOf(turn), &plan));
    return Counts{plan.tasks, plan.units, d.size_bytes()};
  });
}

TEST(Sizes, Softmax) {
  TryEdges({9, 10}, [](const Values& v, int turn) {
    SoftmaxPlan plan;
    Check(MakeSoftmaxPlan({v[0], v[1]}, IsaOf(turn), &plan));
    return Counts{plan.tasks};
  });
}

TEST(Sizes, Normalisation) {
  TryEdges({2, 9, 40}, [](const Values& v, int turn) {
    LayerNormGradPlan plan;
    const LayerNormDesc d = {v[0], v[1], v[2], turn % 2 == 0, 0.1f, true};
    Check(MakeLayerNormGradPlan(d, IsaOf(turn), &plan));
    const Counts counts =
        With(plan.scratch, {plan.tasks.tasks_per_image, plan.tasks.pixels_per_task});
    const BatchNormPlan batch =
        MakeBatchNormPlan({v[0], v[2], v[1], 0.1f}, IsaOf(turn), ThreadsOf(turn));
    return batch.scratch.Check().empty() ? With(batch.scratch, counts) : counts;
  });
}

TEST(Sizes, SqueezeAndExcitation) {
  TryEdges({2, 40, 7, 7, 10}, [](const Values& v, int turn) {
    SqueezeExciteDesc d;
    d.src = Blocked({v[0], v[1], v[2], v[3]});
    d.squeezed = v[4];
    d.scale_src = turn % 2 == 0;
    d.dst = d.scale_src ? d.src : View(kF32, Layout::nhwc, {v[0], v[1], 1, 1});
    SqueezeExcitePlan plan;
    Check(MakeSqueezeExcitePlan(d, IsaOf(turn), ThreadsOf(turn), &plan));
    return With(plan.scratch,
                {plan.reduce.tasks, plan.reduce.splits, plan.expand.tasks, plan.expand.splits});
  });
}

}  // namespace
}  // namespace bd
