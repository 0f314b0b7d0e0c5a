// What planning chooses and refuses.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cc/base/cpu/cpu_model.h"
#include "cc/base/cpu/isa.h"
#include "cc/base/threads/thread_pool.h"
#include "cc/core/conv/common/cost.h"
#include "cc/core/conv/conv.h"
#include "cc/core/conv/direct/direct.h"
#include "tests/cc/core/conv/conv_case.h"

namespace bd {
namespace {

const char* AlgorithmOf(const ConvDesc& d, Isa isa = DetectIsa()) {
  return PlanOf(d, isa).algorithm_name();
}

TEST(ConvPlanTest, EmptyTensorsNeedNoWork) {
  ConvShape d = Square(16, 8, 16, 3, 1, 1);
  d.n = 0;
  ThreadPool pool(2);
  RunConv(PlanOf(d, DetectIsa()), ConvBuffers(), pool);  // touches nothing
}

TEST(ConvPlanTest, GroupsMustDivideChannels) {
  ConvShape d = Square(16, 8, 16, 3, 1, 1);
  d.groups = 3;
  ConvPlan plan;
  EXPECT_EQ(MakeConvPlan(d, DetectIsa(), 2, &plan),
            "groups = 3 does not divide ic = 16 and oc = 16");
}

// Each row of the table says why it does not apply, in words, and one of them always does.
TEST(ConvPlanTest, TensorsAndWindowsMustAgree) {
  const ConvDesc good = Square(16, 8, 16, 3, 1, 1);
  const auto error = [](const ConvDesc& d) {
    ConvPlan plan;
    return MakeConvPlan(d, Isa::kGeneric, 1, &plan);
  };
  ASSERT_EQ(error(good), "");
  ConvDesc d = good;
  d.windows.w.out = 7;
  EXPECT_EQ(
      error(d),
      "windows do not lead from float32 nChw16c [1, 16, 8, 8] to float32 nChw16c [1, 16, 8, 8]");
  d = good;
  d.windows.h.size = 9;
  EXPECT_NE(error(d), "");
  d = good;
  d.dst = TensorView(DataType::f32, Layout::nChw16c, {2, 16, 8, 8});
  EXPECT_NE(error(d), "");
  d = good;
  d.src = TensorView(DataType::f16, Layout::nChw16c, {1, 16, 8, 8});
  EXPECT_EQ(
      error(d),
      "convolution takes float32, bfloat16, or uint8 with int8 weights, not float16 nChw16c [1, "
      "16, 8, 8] with float32 weights");
}

TEST(ConvPlanTest, EveryAlgorithmAppliesOrSaysWhyNot) {
  ConvShape window = Square(32, 9, 48, 3, 1, 1), plain = window, depthwise = window;
  plain.src_layout = Layout::nhwc;
  depthwise.oc = depthwise.groups = 32;
  ConvShape matrix = Square(64, 1, 32, 1, 1, 0), last = window;
  matrix.src_layout = matrix.dst_layout = last.dst_layout = Layout::nhwc;
  last.oc = 3;
  for (const ConvShape& d : {window, plain, depthwise, matrix, last}) {
    std::vector<std::string> names;
    for (const Algorithm& a : ConvAlgorithms()) {
      if (a.applies(a, d, Isa::kAvx2).empty()) {
        names.push_back(a.name);
        EXPECT_GT(CyclesOf(a.cost(a, d, Isa::kAvx2, 2), 2), 0) << a.name;
        ConvPlan by;
        ASSERT_EQ(MakeConvPlanBy(a, d, Isa::kAvx2, 2, &by), "");
        EXPECT_EQ(by.algorithm, &a);
      } else {
        EXPECT_GT(a.applies(a, d, Isa::kAvx2).size(), 5u) << a.name;
      }
    }
    EXPECT_NE(std::find(names.begin(), names.end(), AlgorithmOf(d, Isa::kAvx2)), names.end());
  }
}

TEST(ConvPlanTest, KeysTellPackingsApart) {
  const auto key = [](ConvAlgorithm algorithm, int64_t oc, Isa isa) {
    ConvShape d = Square(144, 9, oc, 3, 1, 1);
    d.algorithm = algorithm;
    return PlanOf(d, isa).pack_key;
  };
  const PackKey direct = key(ConvAlgorithm::kDirect, 40, Isa::kAvx2);
  EXPECT_TRUE(direct == key(ConvAlgorithm::kDirect, 24, Isa::kAvx2));
  EXPECT_FALSE(direct == key(ConvAlgorithm::kDirect, 32, Isa::kAvx2));  // joins no half block
  EXPECT_FALSE(direct == key(ConvAlgorithm::kDirect, 40, Isa::kAvx512));
  EXPECT_FALSE(direct == key(ConvAlgorithm::kWinograd, 40, Isa::kAvx2));
  const auto of_stride = [](int64_t stride) {
    ConvShape s = Square(144, 9, 40, 3, stride, 1);
    s.algorithm = ConvAlgorithm::kWinograd;
    ConvDesc d = s;
    d.src = TensorView(DataType::bf16, d.src.layout(), d.src.dims());
    d.types.weights = DataType::bf16;
    const ConvPlan plan = PlanOf(d, Isa::kAvx512Bf16);
    EXPECT_STREQ(plan.algorithm_name(), "winograd2x2");
    return plan.pack_key;
  };
  EXPECT_FALSE(of_stride(1) == of_stride(2));
  PackKey other = direct;
  other.dtype = DataType::bf16;
  EXPECT_FALSE(direct == other);
}

TEST(ConvPlanTest, WeightsOfAPassStayInL1) {
  for (Isa isa : {Isa::kGeneric, Isa::kAvx2, Isa::kAvx512}) {
    for (int64_t k : {1, 3}) {
      ConvShape d = Square(1040, 9, 40, k, 1, k / 2);
      d.algorithm = ConvAlgorithm::kDirect;
      ConvPlan plan = PlanOf(d, isa);
      if (isa == Isa::kAvx512) {
        EXPECT_EQ(plan.Own<DirectPlan>().pass_blocks, plan.Own<DirectPlan>().icb_chunk);
      } else {
        EXPECT_EQ(plan.Own<DirectPlan>().pass_blocks, k == 1 ? 11 : 1);  // six of 65 blocks, even
      }
      d.post_ops = Chain("eltwise(square);sum(#1)");
      plan = PlanOf(d, isa);
      EXPECT_EQ(plan.Own<DirectPlan>().pass_blocks, plan.icb);
    }
  }
}

// Each strip would read all weights again, and needs memory for its rows.
TEST(ConvPlanTest, StripsOfAWideMatrixHaveSomeTensOfRows) {
  for (Isa isa : {Isa::kGeneric, Isa::kAvx2, Isa::kAvx512}) {
    for (int threads : {1, 2, 3, 6, 12}) {
      for (int64_t rows : {20, 10000}) {
        ConvShape d;
        d.ic = 25088;
        d.oc = 4096;
        d.iw = d.ow = rows;
        d.src_layout = d.dst_layout = Layout::nhwc;
        d.changes_weights = true;
        const ConvPlan plan = PlanOf(d, isa, threads);
        EXPECT_STREQ(plan.algorithm_name(), "direct_plain");
        EXPECT_GE(plan.Own<DirectPlan>().strip_pixels, std::min<int64_t>(rows, 28))
            << threads << " threads";
        EXPECT_LE(plan.Own<DirectPlan>().strip_pixels, 56);
        EXPECT_LE(plan.scratch.bytes(), threads << 21);
        EXPECT_GE(plan.tasks, threads);
      }
    }
  }
}

// Half a last block shares tiles with the block before it where tiles of one block are the rule
// (AVX2), and only there.
TEST(ConvPlanTest, GroupsOfBlocks) {
  const auto blocks = [](ConvShape d, Isa isa) {
    d.algorithm = d.groups == 1 ? ConvAlgorithm::kDirect : ConvAlgorithm::kAuto;
    const ConvPlan plan = PlanOf(d, isa);
    std::vector<int64_t> of_groups;
    const OutputGroups& groups = plan.Own<DirectPlan>().groups;
    for (const OutputGroup& g : groups.list) of_groups.push_back(g.blocks);
    EXPECT_EQ(groups.widest_blocks, *std::max_element(of_groups.begin(), of_groups.end()));
    return of_groups;
  };
  using Blocks = std::vector<int64_t>;
  const ConvShape projection = Square(144, 9, 40, 1, 1, 0);
  EXPECT_EQ(blocks(projection, Isa::kGeneric), (Blocks{1, 1, 1}));
  EXPECT_EQ(blocks(projection, Isa::kAvx2), (Blocks{1, 2}));
  EXPECT_EQ(blocks(projection, Isa::kAvx512), (Blocks{2, 1}));
  EXPECT_EQ(blocks(Square(144, 9, 41, 1, 1, 0), Isa::kAvx2), (Blocks{1, 1, 1}));
  EXPECT_EQ(blocks(Square(144, 9, 8, 1, 1, 0), Isa::kAvx2), (Blocks{1}));
  EXPECT_EQ(blocks(Square(24, 9, 40, 1, 1, 0), Isa::kAvx2), (Blocks{1, 1, 1}));
  EXPECT_EQ(blocks(Square(24, 9, 40, 3, 1, 1), Isa::kAvx2), (Blocks{1, 2}));
  ConvShape grouped = Square(80, 9, 40, 3, 1, 1);
  grouped.groups = 2;
  EXPECT_EQ(blocks(grouped, Isa::kAvx2), (Blocks{1, 1, 1}));
}

// Tiles multiply zero by channels of other groups, which direct may not.
TEST(ConvPlanTest, LanesWhereGroupsShareBlocks) {
  const auto chosen = [](int64_t channels, int64_t groups, ConvAlgorithm algorithm, Layout src) {
    ConvShape d = Square(channels, 9, channels, 3, 1, 1);
    d.groups = groups;
    d.algorithm = algorithm;
    d.src_layout = src;
    return std::string(AlgorithmOf(d));
  };
  constexpr auto kDirect = ConvAlgorithm::kDirect, kAuto = ConvAlgorithm::kAuto;
  EXPECT_EQ(chosen(32, 8, kDirect, Layout::nChw16c), "lanes");
  EXPECT_EQ(chosen(48, 2, kDirect, Layout::nChw16c), "lanes");
  EXPECT_EQ(chosen(48, 2, kAuto, Layout::nChw16c), "direct");
  EXPECT_EQ(chosen(64, 2, kDirect, Layout::nChw16c), "direct");
  EXPECT_EQ(chosen(64, 2, kDirect, Layout::nhwc), "lanes");
  EXPECT_EQ(chosen(64, 64, kDirect, Layout::nChw16c), "depthwise");
  EXPECT_EQ(chosen(64, 1, kDirect, Layout::nhwc), "direct_plain");
}

const char* Chosen(int64_t kh, int64_t kw, ConvAlgorithm algorithm) {
  ConvShape d = Square(160, 17, 160, 1, 1, 0);
  d.kh = kh;
  d.kw = kw;
  d.pad_top = kh / 2;
  d.pad_left = kw / 2;
  d.algorithm = algorithm;
  const ConvPlan plan = PlanOf(d, DetectIsa());
  const double growth = static_cast<double>(plan.packed_floats()) / (kh * kw * d.ic * d.oc);
  const double paired = 17. / 16;  // scales and terms
  EXPECT_LE(growth, algorithm == ConvAlgorithm::kAutoSmall      ? 2. * paired
                    : algorithm == ConvAlgorithm::kAutoSmallest ? 9. / 8
                                                                : 4. * paired);
  return plan.algorithm_name();
}

// Split phases fill whole blocks of source channels with zeros.
TEST(ConvPlanTest, SmallGrowthCountsWhatIsPacked) {
  for (int64_t ic : {28, 32, 256}) {
    ConvShape s = Square(ic, 56, 256, 3, 2, 1);
    s.algorithm = ConvAlgorithm::kAutoSmall;
    ConvDesc d = s;
    d.src = TensorView(DataType::bf16, d.src.layout(), d.src.dims());
    d.types.weights = DataType::bf16;
    const ConvPlan plan = PlanOf(d, Isa::kAvx512Bf16);
    EXPECT_STREQ(plan.algorithm_name(), ic == 28 ? "direct" : "winograd2x2");
    EXPECT_LE(plan.packed_floats(), 2 * 9 * ic * 256);
  }
}

// Sums of bytes are 32 times as fast by AMX as those of floats, and Winograd's are of words.
TEST(ConvPlanTest, BytesAreNotTransformedForAmx) {
  for (Isa isa : {Isa::kAvx512Vnni, Isa::kAvx512Bf16, Isa::kAvx512Amx}) {
    ConvDesc d = Square(256, 28, 256, 3, 1, 1);
    d.src = TensorView(DataType::u8, d.src.layout(), d.src.dims());
    d.types.weights = DataType::s8;
    EXPECT_STREQ(AlgorithmOf(d, isa), isa == Isa::kAvx512Amx ? "direct" : "winograd4x4");
  }
}

// They are not multiplied in pairs, either.
TEST(ConvPlanTest, BytesAreNotMultipliedInPairs) {
  ConvShape rows = Square(256, 28, 256, 1, 1, 0);
  rows.src_layout = rows.dst_layout = Layout::nhwc;
  ConvDesc d = rows;
  d.src = TensorView(DataType::u8, d.src.layout(), d.src.dims());
  d.types.weights = DataType::s8;
  const CpuModel zen4 = {"AuthenticAMD", 0x19, 0x11};
  PretendCpu(&zen4);
  for (const Algorithm& gemm : ConvAlgorithms()) {
    if (std::string(gemm.name) != "gemm") continue;
    const auto cycles_by = [&](ConvAlgorithm algorithm) {
      d.algorithm = algorithm;
      return gemm.cost(gemm, d, Isa::kAvx512, 1).cycles;
    };
    EXPECT_EQ(cycles_by(ConvAlgorithm::kFip), cycles_by(ConvAlgorithm::kDirect));
  }
  PretendCpu(nullptr);
}

TEST(ConvPlanTest, EachWindowHasItsTransform) {
  for (ConvAlgorithm algorithm : {ConvAlgorithm::kAuto, ConvAlgorithm::kWinograd}) {
    EXPECT_STREQ(Chosen(3, 3, algorithm), "winograd4x4");
    EXPECT_STREQ(Chosen(5, 5, algorithm), "winograd2x2");
    EXPECT_STREQ(Chosen(1, 3, algorithm), "winograd1x4");
    EXPECT_STREQ(Chosen(3, 1, algorithm), "winograd4x1");
    EXPECT_STREQ(Chosen(1, 7, algorithm), "winograd1x3");
    EXPECT_STREQ(Chosen(7, 1, algorithm), "winograd3x1");
  }
  EXPECT_STREQ(Chosen(2, 2, ConvAlgorithm::kWinograd), "direct");
  EXPECT_STREQ(Chosen(3, 3, ConvAlgorithm::kAutoSmall), "winograd2x2");
  EXPECT_STREQ(Chosen(5, 5, ConvAlgorithm::kAutoSmall), "winograd2x2");
  EXPECT_STREQ(Chosen(3, 1, ConvAlgorithm::kAutoSmall), "winograd4x1");
  EXPECT_STREQ(Chosen(1, 7, ConvAlgorithm::kAutoSmall), "winograd1x3");
  EXPECT_STREQ(Chosen(1, 7, ConvAlgorithm::kDirect), "direct");
}

// What "auto" finds where no window has a transform.
const char* PairedOrDirect() { return AddsBesideMultiplies() ? "paired" : "direct"; }

TEST(ConvPlanTest, PairedWhereItAppliesOrPays) {
  EXPECT_STREQ(Chosen(2, 2, ConvAlgorithm::kAuto), PairedOrDirect());
  EXPECT_STREQ(Chosen(2, 2, ConvAlgorithm::kAutoSmall), PairedOrDirect());
  EXPECT_STREQ(Chosen(3, 3, ConvAlgorithm::kAutoSmallest), PairedOrDirect());
  const char* const asked_for = DetectIsa() >= Isa::kAvx512 ? "paired" : "direct";
  EXPECT_STREQ(Chosen(3, 3, ConvAlgorithm::kFip), asked_for);
  EXPECT_STREQ(Chosen(1, 1, ConvAlgorithm::kFip), asked_for);
  EXPECT_STREQ(Chosen(1, 1, ConvAlgorithm::kDirect), "direct");
  EXPECT_STREQ(Chosen(1, 1, ConvAlgorithm::kWinograd), "direct");

  const auto of = [](ConvShape d, Isa isa) {
    d.algorithm = ConvAlgorithm::kFip;
    return AlgorithmOf(d, isa);
  };
  EXPECT_STREQ(of(Square(64, 8, 64, 1, 1, 0), Isa::kGeneric), "direct");
  EXPECT_STREQ(of(Square(64, 8, 64, 1, 1, 0), std::min(DetectIsa(), Isa::kAvx2)), "direct");
  EXPECT_STREQ(of(Square(15, 8, 64, 1, 1, 0), DetectIsa()), "direct");  // no whole block
  ConvShape d = Square(64, 8, 64, 3, 1, 1);
  d.groups = 2;
  EXPECT_STREQ(of(d, DetectIsa()), "direct");
  d.groups = 64;
  EXPECT_STREQ(of(d, DetectIsa()), "depthwise");
  d.groups = 1;
  d.src_layout = Layout::nhwc;
  EXPECT_STREQ(of(d, DetectIsa()), "direct_plain");

  // Few output channels do not pay for the terms of the source.
  EXPECT_STREQ(AlgorithmOf(Square(144, 56, 8, 1, 1, 0)), "direct");
  // Nor do few pixels, whose products wait for the weights: pairs have more of them.
  EXPECT_STREQ(AlgorithmOf(Square(48, 1, 1152, 1, 1, 0)), "direct");
}

// Planes of all tiles of a batch would come from memory, and their pages from the system.
TEST(ConvPlanTest, WinogradsScratchDoesNotGrowWithTheBatch) {
  for (Isa isa : {Isa::kGeneric, Isa::kAvx2, Isa::kAvx512}) {
    for (int64_t n : {1, 8, 64}) {
      ConvShape d = Square(256, 56, 256, 3, 1, 1);
      d.n = n;
      const ConvPlan plan = PlanOf(d, isa);
      EXPECT_STREQ(plan.algorithm_name(), "winograd4x4");
      EXPECT_LT(plan.scratch.bytes(), 16 << 20) << n;
    }
  }
}

// Of 128 threads each has something to do, or no task.
TEST(ConvPlanTest, LittleWorkIsCutAmongFewThreads) {
  const ConvShape d = Square(144, 28, 32, 1, 1, 0);
  EXPECT_EQ(PlanOf(d, Isa::kAvx512, 8).tasks, 8);
  EXPECT_LE(PlanOf(d, Isa::kAvx512, 128).tasks, 18);
  EXPECT_GE(PlanOf(Square(256, 56, 512, 1, 1, 0), Isa::kAvx512, 128).tasks, 112);
}

TEST(ConvPlanTest, WinogradOnlyWhereItPays) {
  ConvShape first = Square(3, 224, 64, 7, 2, 3);
  first.src_layout = Layout::nhwc;
  EXPECT_STREQ(AlgorithmOf(first), "winograd3x3");
  first.algorithm = ConvAlgorithm::kAutoSmall;  // it packs 2.9 times the weights
  EXPECT_STREQ(AlgorithmOf(first), "direct_plain");
  first = Square(5, 224, 64, 7, 2, 3);  // 20 channels of phases
  first.src_layout = Layout::nhwc;
  first.algorithm = ConvAlgorithm::kWinograd;
  EXPECT_STREQ(AlgorithmOf(first), "direct_plain");
  EXPECT_STREQ(AlgorithmOf(Square(64, 56, 64, 3, 1, 1)), "winograd4x4");
  EXPECT_STREQ(AlgorithmOf(Square(64, 56, 64, 3, 2, 1)), PairedOrDirect());
  ConvShape d = Square(64, 56, 64, 3, 1, 1);
  d.algorithm = ConvAlgorithm::kDirect;
  EXPECT_STREQ(AlgorithmOf(d), "direct");
}

}  // namespace
}  // namespace bd
