// Chooses form, blocking and the split of the chain of post-ops.
#include <algorithm>
#include <limits>

#include "cc/core/conv/conv.h"
#include "cc/core/conv/conv_depthwise_kernel.h"
#include "cc/core/conv/conv_kernel.h"
#include "cc/core/conv/conv_paired.h"
#include "cc/core/conv/conv_rows.h"
#include "cc/core/conv/conv_rows_kernel.h"
#include "cc/core/conv/conv_run.h"
#include "cc/core/conv/conv_tiles.h"
#include "cc/core/conv/conv_winograd.h"

namespace bd {
namespace {

constexpr int64_t kRowsTaskBytes = 256 << 10;  // weights worth a task in an inner product
std::string CheckPool(const ConvDesc& d) {
  if (d.pool_h != 2 || d.pool_w != 2) {
    return "a convolution pools windows of 2x2, not of " + std::to_string(d.pool_h) + "x" +
           std::to_string(d.pool_w) + "; use an op of its own";
  }
  if (d.dst_layout != Layout::nChw16c) return "a pooled result is nChw16c; add a reorder";
  for (const PostOp& op : d.post_ops.entries()) {
    if (op.kind != PostOpKind::kSum || op.operand.input != OperandRef::kDst) continue;
    return "the previous dst of a sum is pooled already; name an operand";
  }
  return "";
}

std::string Check(const ConvDesc& d) {
  if (d.groups < 1 || d.ic % d.groups != 0 || d.oc % d.groups != 0) {
    return "groups = " + std::to_string(d.groups) +
           " does not divide ic = " + std::to_string(d.ic) + " and oc = " + std::to_string(d.oc);
  }
  for (Layout layout : {d.src_layout, d.dst_layout}) {
    if (layout != Layout::nhwc && layout != Layout::nChw16c) {
      return "convolution takes nhwc and nChw16c tensors; add a reorder";
    }
  }
  if ((d.src_image_blocks > 0 && d.src_layout != Layout::nChw16c) ||
      (d.dst_image_blocks > 0 && d.dst_layout != Layout::nChw16c)) {
    return "only nChw16c tensors can be parts of wider ones; add a reorder";
  }
  if (d.dst_image_blocks > 0 && d.post_ops.ReadsDst()) {
    return "a sum cannot read the previous dst where that is a part of a wider tensor; "
           "give it an operand";
  }
  return d.pooled() ? CheckPool(d) : "";
}

// An inner product of so few rows that packing would only read and keep a large matrix twice; where
// it is packed once for many calls, of so few that reading it as it is is faster.
bool HasFewRows(const ConvDesc& d, Isa isa) {
  const RowsKernels& kernels = RowsKernelsFor(isa);
  const bool kept = d.keeps_weights && d.algorithm == ConvAlgorithm::kAuto;
  return d.src_layout == Layout::nhwc && d.dst_layout == Layout::nhwc && IsInPlace(d) &&
         d.groups == 1 && d.n == 1 &&
         d.oh * d.ow <= (kept ? kernels.max_kept_rows : kernels.max_rows);
}

bool MayTransform(const ConvDesc& d) {
  return d.algorithm != ConvAlgorithm::kPaired && d.algorithm != ConvAlgorithm::kAutoSmallest;
}

ConvForm ChooseForm(const ConvDesc& d, Isa isa) {
  if (HasFewRows(d, isa)) return ConvForm::kRows;
  if (d.src_layout == Layout::nhwc) return ConvForm::kPlainTile;
  if (d.dst_layout == Layout::nhwc) {
    return d.groups == 1 && d.oc <= kMaxDotChannels ? ConvForm::kDot : ConvForm::kTile;
  }
  const bool depthwise = d.groups == d.ic && d.groups == d.oc && d.kh <= kMaxDepthwiseRows;
  return depthwise ? ConvForm::kDepthwise : ConvForm::kTile;
}

bool AsClamp(const PostOp& op, float* lo, float* hi) {
  if (op.kind != PostOpKind::kEltwise || op.scale != 1.f) return false;
  *lo = 0.f;
  switch (op.eltwise) {
    case EltwiseAlg::kRelu:
      *hi = std::numeric_limits<float>::infinity();
      return op.alpha == 0.f;  // else it has a slope
    case EltwiseAlg::kRelu6:
      *hi = 6.f;
      return true;
    case EltwiseAlg::kBoundedRelu:
      *hi = op.alpha;
      return op.alpha >= 0.f;
    case EltwiseAlg::kClip:
      *lo = op.alpha;
      *hi = op.beta;
      return op.alpha <= 0.f && op.beta >= 0.f;
    default:
      return false;
  }
}

bool IsSilu(const PostOp& op) {
  return op.kind == PostOpKind::kEltwise && op.eltwise == EltwiseAlg::kSwish && op.alpha == 1.f &&
         op.scale == 1.f;
}

// Splits the chain: [bias] [sum] then a clamp in registers or the rest on the
// tile. A plain dst keeps all but the bias for the pass that stores its rows.
ConvEpilogue MakeEpilogue(const ConvDesc& d) {
  ConvEpilogue e;
  const std::vector<PostOp>& ops = d.post_ops.entries();
  size_t i = 0;
  if (i < ops.size() && ops[i].kind == PostOpKind::kBinary && ops[i].binary == BinaryAlg::kAdd &&
      ops[i].shape == OperandShape::kChannel) {
    e.has_bias = true;
    e.bias = ops[i++].operand;
  }
  if (d.dst_layout == Layout::nChw16c) {
    if (i < ops.size() &&
        (ops[i].kind == PostOpKind::kSum ||
         (ops[i].kind == PostOpKind::kBinary && ops[i].binary == BinaryAlg::kAdd &&
          ops[i].shape == OperandShape::kTensor))) {
      e.has_sum = true;
      e.sum = ops[i].operand;
      e.sum_scale = ops[i].kind == PostOpKind::kSum ? ops[i].scale : 1.f;
      ++i;
    }
    if (i + 1 == ops.size() && AsClamp(ops[i], &e.lo, &e.hi)) {
      e.clamp = true;
      ++i;
    }
  }
  for (; i < ops.size(); ++i) e.rest.Append(ops[i]);
  e.silu = e.rest.len() == 1 && IsSilu(e.rest.entries()[0]);
  return e;
}

// Whether half a last block shares tiles with the block before it. Not where there are more
// channels than products in a sum, as in expansions: one of many groups would gain, and pairs with
// depthwise split best where groups are even.
bool JoinsHalf(const ConvPlan& plan) {
  const ConvDesc& d = plan.desc;
  return plan.packing.form == ConvForm::kTile && d.groups == 1 && plan.ocb > 1 &&
         GemmKernelsFor(plan.isa).joined_tile_pixels > 0 && d.oc <= d.ic * d.kh * d.kw &&
         d.oc <= plan.ocb * kBlock - kBlock / 2;
}

void MakeGroups(ConvPlan* plan) {
  const ConvDesc& d = plan->desc;
  const bool winograd = plan->packing.form == ConvForm::kWinograd;
  const int64_t taps = winograd ? 1 : d.kh * d.kw;  // of each of Winograd's planes
  int64_t offset = 0;
  if (plan->packing.form == ConvForm::kDepthwise || plan->packing.form == ConvForm::kDot) {
    const int64_t rows = plan->packing.form == ConvForm::kDot ? d.oc : 1;
    plan->packed_floats = plan->icb * taps * rows * kBlock;
    plan->groups.push_back({0, plan->ocb, 0, plan->icb, 0});
    return;
  }
  const int64_t ic_group = d.ic / d.groups, oc_group = d.oc / d.groups;
  const int64_t step = plan->packing.group_blocks;
  for (int64_t first = 0, blocks; first < plan->ocb; first += blocks) {
    const int64_t left = plan->ocb - first;
    blocks = plan->packing.joins_half && left == step + 1 ? left : std::min(step, left);
    OutputGroup g{first, blocks, 0, plan->icb, offset};
    plan->widest_blocks = std::max(plan->widest_blocks, blocks);
    int64_t channels = winograd ? d.ic * TransformOf(plan->packing).phases() : d.ic;
    if (d.groups > 1 && plan->packing.form == ConvForm::kTile) {
      const int64_t last_oc = std::min(d.oc, (first + blocks) * kBlock) - 1;
      g.icb_begin = first * kBlock / oc_group * ic_group / kBlock;
      g.icb_end = CeilDiv((last_oc / oc_group + 1) * ic_group, kBlock);
      channels = std::min(d.ic, g.icb_end * kBlock) - g.icb_begin * kBlock;
    }
    offset += channels * taps * blocks * kBlock;
    plan->groups.push_back(g);
  }
  if (winograd) {
    if (plan->packing.paired) offset += 2 * plan->ocb * kBlock;  // scales and terms of a plane
    offset *= TransformOf(plan->packing).planes();
  }
  if (plan->packing.paired && !winograd) offset += PairedTrailerOf(*plan).floats;
  const int64_t note = d.keeps_weights ? kBlock : 0;  // weights that pass by are not looked at
  plan->packed_floats = plan->packing.as_is() ? note : offset;
}

// Depthwise needs no strip: tasks are ranges of the n * icb * oh output rows,
// of about 2,000 cycles and more.
void PlanDepthwise(ConvPlan* plan) {
  const ConvDesc& d = plan->desc;
  const int64_t rows = d.n * plan->icb * d.oh;
  const int64_t work = rows * d.ow * d.kh * d.kw / 2;
  plan->tasks = std::clamp<int64_t>(work / 2000, 1, std::min<int64_t>(rows, 16 * plan->threads));
}

// A thread reads one range of columns: the longer, the better memory delivers.
void PlanRows(ConvPlan* plan) {
  const ConvDesc& d = plan->desc;
  const int64_t groups = static_cast<int64_t>(plan->groups.size());
  const int64_t most = std::min<int64_t>(groups, plan->threads);
  plan->strips = 1;
  plan->strip_pixels = d.oh * d.ow;
  plan->group_splits = std::clamp<int64_t>(4 * d.ic * d.oc / kRowsTaskBytes, 1, most);
  plan->tasks = plan->group_splits;
  plan->row.count =
      plan->strip_pixels * CeilDiv(groups, plan->group_splits) * plan->widest_blocks * kBlock;
}

// Books what planning has counted.
void BookScratch(ConvPlan* plan) {
  plan->bias = plan->scratch.Book<float>("bias", plan->bias.count);
  plan->strip = plan->scratch.Book<float>("strip", plan->strip.count, plan->threads);
  plan->row = plan->scratch.Book<float>("row", plan->row.count, plan->threads);
  plan->scaled = plan->scratch.Book<float>("scaled", plan->scaled.count, plan->threads);
  plan->terms = plan->scratch.Book<float>("terms", plan->terms.count, plan->threads);
}

}  // namespace

const char* ConvPlan::algorithm_name() const {
  switch (packing.form) {
    case ConvForm::kTile:
      return packing.paired ? "paired" : "direct";
    case ConvForm::kPlainTile:
      return "direct_plain";
    case ConvForm::kDot:
      return "dot";
    case ConvForm::kRows:
      return "rows";
    case ConvForm::kWinograd:
      return TransformOf(packing).name;
    default:
      return "depthwise";
  }
}

std::string MakeConvPlan(const ConvDesc& desc, Isa isa, int threads, ConvPlan* plan) {
  if (std::string error = Check(desc); !error.empty()) return error;
  *plan = ConvPlan();
  plan->desc = desc;
  plan->isa = isa;
  plan->threads = threads;
  plan->icb = CeilDiv(desc.ic, kBlock);
  plan->ocb = CeilDiv(desc.oc, kBlock);
  plan->src_image = ImageFloats(desc.src_image_blocks, plan->icb, desc.ih * desc.iw);
  if (MayTransform(desc)) plan->packing.winograd = ChooseWinograd(desc, isa, threads);
  plan->packing.form =
      plan->packing.winograd != kNoWinograd ? ConvForm::kWinograd : ChooseForm(desc, isa);
  plan->packing.paired = ChoosePaired(desc, plan->packing.form, isa);
  const bool rows = plan->packing.form == ConvForm::kRows;
  plan->packing.group_blocks = GemmKernelsFor(isa).tile_blocks;
  if (desc.groups > 1 && desc.oc / desc.groups % (plan->packing.group_blocks * kBlock) != 0) {
    plan->packing.group_blocks = 1;  // a group of two blocks would straddle more of the source
  }
  plan->packing.joins_half = JoinsHalf(*plan);
  plan->epilogue = MakeEpilogue(desc);
  if (desc.pooled() && !CanPoolTiles(*plan)) {
    return "a convolution pools where Winograd's tiles hold whole windows (3x3 or 5x5, stride 1, "
           "nChw16c, one group) and its chain is a bias and a clamp at most; use an op of its own";
  }
  if (plan->epilogue.has_bias && desc.oc % kBlock != 0 && !rows) {
    plan->bias.count = plan->ocb * kBlock;
  }
  MakeGroups(plan);
  if (desc.n * desc.dst_h() * desc.dst_w() == 0) return "";  // nothing to compute
  plan->pools_tiles = desc.pooled();
  plan->dst_plane = desc.dst_h() * desc.dst_w();
  plan->dst_image = ImageFloats(desc.dst_image_blocks, plan->ocb, plan->dst_plane);
  if (plan->packing.form == ConvForm::kDepthwise) {
    PlanDepthwise(plan);
  } else if (plan->packing.form == ConvForm::kWinograd) {
    PlanWinograd(plan);
  } else if (rows) {
    PlanRows(plan);
  } else {
    PlanTiles(plan);
  }
  BookScratch(plan);
  return "";
}

}  // namespace bd
