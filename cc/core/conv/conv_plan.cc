// The table of algorithms; checks a convolution, chooses a row, and binds plans to buffers.
#include <algorithm>
#include <limits>
#include <tuple>

#include "cc/base/size.h"
#include "cc/base/str_cat.h"
#include "cc/core/conv/common/conv_run.h"
#include "cc/core/conv/common/cost.h"
#include "cc/core/conv/conv.h"
#include "cc/core/conv/direct/direct.h"
#include "cc/core/conv/winograd/winograd.h"
#include "cc/core/gemm/low_precision_pack.h"

namespace bd {
namespace {

Algorithm Variant(Algorithm room, const char* name, int variant, bool low_precision) {
  room.name = name;
  room.variant = variant;
  room.low_precision = low_precision;
  return room;
}

std::vector<Algorithm> MakeTable() {
  std::vector<Algorithm> table = {
      kRows,
      kDepthwise,
      kLanes,
      Variant(kDirect, "paired", kFipTiles, false),
      Variant(kDirect, "direct", kBlockedTiles, true),
      kGemm,
      Variant(kDirect, "direct_plain", kNhwcTiles, true),
      Variant(kDirect, "dot", kDotLanes, false),
  };
  for (int row = 0; row < kNumWinogradTransforms; ++row) {
    table.push_back(Variant(kWinograd, kWinogradTransforms[row].name, row, true));
  }
  return table;
}

std::string CheckPool(const ConvDesc& d) {
  if (d.pool_h != 2 || d.pool_w != 2) {
    return StrCat("a convolution pools windows of 2x2, not of ", d.pool_h, "x", d.pool_w,
                  "; use an op of its own");
  }
  if (!d.dst.blocked()) return "a pooled result is nChw16c; add a reorder";
  for (const PostOp& op : d.post_ops.entries()) {
    if (op.kind != PostOpKind::kSum || op.operand.input != OperandRef::kDst) continue;
    return "the previous dst of a sum is pooled already; name an operand";
  }
  return "";
}

std::string CheckSrcBlocks(const ConvDesc& d) {
  if (d.src_blocks.empty()) return "";
  if (d.ic() != static_cast<int64_t>(d.src_blocks.size()) * kBlock || !d.src.blocked()) {
    return "a source of listed blocks has 16 channels in each, all of a wider tensor";
  }
  const int64_t blocks = d.src.image_stride() / std::max<int64_t>(1, d.src.block_stride());
  int64_t least = 0;
  for (int64_t block : d.src_blocks) {
    if (block < least || (d.src.pixels() > 0 && block >= blocks)) {
      return StrCat("source blocks must ascend within the wider tensor; one is ", block);
    }
    least = block + 1;
  }
  return "";
}

std::string CheckTypes(const ConvDesc& d) {
  const ConvTypes& t = d.types;
  const DataType src = d.src.dtype(), dst = d.dst.dtype();
  const bool floats = src == DataType::f32 && t.weights == DataType::f32;
  const bool bf16 =
      src == DataType::bf16 && (t.weights == DataType::bf16 || t.weights == DataType::f32);
  const bool bytes = src == DataType::u8 && t.weights == DataType::s8;
  if (!floats && !bf16 && !bytes) {
    return StrCat("convolution takes float32, bfloat16, or uint8 with int8 weights, not ",
                  d.src.ToString(), " with ", DataTypeName(t.weights), " weights");
  }
  for (DataType type : {dst, t.sum}) {
    if (type == DataType::f32 || (!floats && (type == DataType::bf16 || type == DataType::u8))) {
      continue;
    }
    return StrCat("a convolution of ", DataTypeName(src), " neither stores nor adds ",
                  DataTypeName(type));
  }
  const int64_t products = d.kh() * d.kw() * (d.groups > 0 ? d.ic() / d.groups : 0);
  if (bytes && products > kMostInt8Products) {
    return StrCat("sums of ", products, " products of bytes may be no int32; at most ",
                  kMostInt8Products, " are");
  }
  const ConvEpilogue e = MakeConvEpilogue(d, true);
  const auto is_operand = [](const PostOp& op) {
    return op.kind == PostOpKind::kSum && op.operand.input != OperandRef::kDst &&
           op.operand.offset == 0;
  };
  const std::vector<PostOp>& rest = e.rest.entries();
  if (t.sum != DataType::f32 && !e.has_sum &&
      !(d.dst.blocked() && std::any_of(rest.begin(), rest.end(), is_operand))) {
    return StrCat("a sum of ", DataTypeName(t.sum),
                  " follows the bias at once, or is of a blocked dst and whole");
  }
  if (e.has_sum && e.sum.input == OperandRef::kDst && t.sum != dst) {
    return "a sum of the previous dst is of its type";
  }
  if (dst != DataType::f32 && e.rest.ReadsDst()) {
    return StrCat("a sum of a previous dst of ", DataTypeName(dst),
                  " follows the bias at once; give it an operand");
  }
  const std::tuple<const char*, DataType, Quantization> quantized[] = {
      {"src", src, t.src_quantization},
      {"dst", dst, t.dst_quantization},
      {"the operand of a sum", t.sum, t.sum_quantization}};
  for (const auto& [name, type, quantization] : quantized) {
    if (type != DataType::u8) continue;  // nobody reads it
    if (std::string error = CheckQuantization(name, type, quantization); !error.empty()) {
      return error;
    }
  }
  return "";
}

std::string CheckWindows(const ConvDesc& d) {
  const bool fits = d.src.h() == d.ih() && d.src.w() == d.iw() && d.dst.h() == d.dst_h() &&
                    d.dst.w() == d.dst_w() && d.dst.n() == d.n();
  return fits ? "" : "windows do not lead from " + d.src.ToString() + " to " + d.dst.ToString();
}

// Plans have an entry for each row of a stride.
constexpr int64_t kMostStride = 1 << 16;

std::string Check(const ConvDesc& d) {
  for (const TensorView* view : {&d.src, &d.dst}) {
    if (view->layout() == Layout::nChw16c) continue;
    if (view->layout() != Layout::nhwc) {
      return "convolution takes nhwc and nChw16c tensors; add a reorder";
    }
    if (IsPart(*view)) return "only nChw16c tensors can be parts of wider ones; add a reorder";
  }
  if (std::string error = CheckWindows(d); !error.empty()) return error;
  if (std::max(d.sh(), d.sw()) > kMostStride) {
    return StrCat("a convolution has strides of at most ", kMostStride, "; got ", d.sh(), " and ",
                  d.sw());
  }
  if (std::string error = CheckSrcBlocks(d); !error.empty()) return error;
  if (std::string error = CheckSizes(d); !error.empty()) return error;
  if (IsPart(d.dst) && d.post_ops.ReadsDst()) {
    return "a sum cannot read the previous dst where that is a part of a wider tensor; "
           "give it an operand";
  }
  if (std::string error = CheckTypes(d); !error.empty()) return error;
  return d.pooled() ? CheckPool(d) : "";
}

// The row of the table that takes least, or null.
const Algorithm* Choose(const ConvDesc& desc, Isa isa, int threads) {
  const Algorithm* best = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const Algorithm& algorithm : ConvAlgorithms()) {
    if (!WhyNot(algorithm, desc, isa).empty()) continue;
    const double cycles = CyclesOf(algorithm.cost(algorithm, desc, isa, threads), threads);
    if (best != nullptr && cycles >= least) continue;
    best = &algorithm;
    least = cycles;
  }
  return best;
}

// By a row that applies to a description that is checked.
std::string PlanBy(const Algorithm& algorithm, const ConvDesc& desc, Isa isa, int threads,
                   ConvPlan* plan) {
  *plan = ConvPlan();
  plan->desc = plan->run_desc = desc;
  plan->isa = isa;
  plan->threads = threads;
  plan->algorithm = &algorithm;
  plan->epilogue = MakeConvEpilogue(desc, desc.dst.blocked());
  plan->icb = CeilDiv(desc.ic(), kBlock);
  plan->ocb = CeilDiv(desc.oc(), kBlock);
  plan->src_image_stride = desc.src.image_stride();
  plan->src_bytes = SizeOf(desc.src.dtype());
  plan->tensors.dst = {desc.dst.dtype(), desc.types.dst_quantization};
  plan->tensors.sum = {desc.types.sum, desc.types.sum_quantization};
  plan->tensors.dst_bytes = SizeOf(desc.dst.dtype());
  plan->tensors.sum_bytes = SizeOf(desc.types.sum);
  if (plan->epilogue.has_bias && desc.oc() % kBlock != 0) plan->bias.count = plan->ocb * kBlock;
  algorithm.plan(algorithm, plan);
  if (!plan->empty()) plan->bias = plan->scratch.Book<float>("bias", plan->bias.count);
  if (!Size(plan->packed_bytes).fits()) return "packed weights would be more than 2^47 bytes";
  return plan->scratch.Check();
}

}  // namespace

const std::vector<Algorithm>& ConvAlgorithms() {
  static const auto* const table = new std::vector<Algorithm>(MakeTable());
  return *table;
}

std::string WhyNot(const Algorithm& algorithm, const ConvDesc& desc, Isa isa) {
  if (desc.low_precision() && !algorithm.low_precision) return "src is not float32";
  return algorithm.applies(algorithm, desc, isa);
}

std::string MakeConvPlan(const ConvDesc& desc, Isa isa, int threads, ConvPlan* plan) {
  if (std::string error = Check(desc); !error.empty()) return error;
  const Algorithm* algorithm = Choose(desc, isa, threads);
  if (algorithm == nullptr && desc.low_precision()) {
    return StrCat("there is no convolution of ", DataTypeName(desc.src.dtype()),
                  " that pools, of groups that share blocks with algorithm direct, or from or to "
                  "nhwc with such a sum; add an op of its own");
  }
  if (algorithm == nullptr) {  // of others `direct` or `direct_plain` applies always
    return "a convolution pools where Winograd's tiles hold whole windows (3x3 or 5x5, stride 1, "
           "nChw16c, one group) and its chain is a bias and a clamp at most; use an op of its own";
  }
  return PlanBy(*algorithm, desc, isa, threads, plan);
}

std::string MakeConvPlanBy(const Algorithm& algorithm, const ConvDesc& desc, Isa isa, int threads,
                           ConvPlan* plan) {
  std::string error = Check(desc);
  return error.empty() ? PlanBy(algorithm, desc, isa, threads, plan) : error;
}

void PackConvWeights(const ConvPlan& plan, const float* hwio, float* packed, ThreadPool& pool,
                     const float* src) {
  if (plan.packed_bytes == 0) return;
  const Algorithm& algorithm = *plan.algorithm;
  algorithm.pack(plan, hwio, packed, pool);
  const int exponent = ConvWeightsExponent(plan, src);
  if (exponent != 0) algorithm.suit(plan, exponent, packed, pool);
}

int ConvWeightsExponent(const ConvPlan& plan, const float* src) {
  const auto exponent = plan.algorithm == nullptr ? nullptr : plan.algorithm->exponent;
  return src == nullptr || exponent == nullptr || plan.empty() ? 0 : exponent(plan, src);
}

void RunConv(const ConvPlan& plan, const ConvBuffers& buffers, ThreadPool& pool) {
  if (plan.empty()) return;
  const BoundConv bound(plan, buffers);
  plan.algorithm->run(bound.run(), pool);
}

}  // namespace bd
