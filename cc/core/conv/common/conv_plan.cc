// Checks sizes, and splits a chain of post-ops between registers and memory.
#include "cc/core/conv/common/conv_plan.h"

#include <algorithm>
#include <limits>

#include "cc/base/size.h"
#include "cc/base/str_cat.h"

namespace bd {
namespace {

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

}  // namespace

ConvEpilogue MakeConvEpilogue(const ConvDesc& d, bool sums_in_registers) {
  ConvEpilogue e;
  const std::vector<PostOp>& ops = d.post_ops.entries();
  size_t i = 0;
  if (i < ops.size() && ops[i].kind == PostOpKind::kBinary && ops[i].binary == BinaryAlg::kAdd &&
      ops[i].shape == OperandShape::kChannel) {
    e.has_bias = true;
    e.bias = ops[i++].operand;
  }
  if (sums_in_registers) {
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

std::string CheckSizes(const ConvDesc& d) {
  if (d.groups < 1 || d.ic() % d.groups != 0 || d.oc() % d.groups != 0) {
    return StrCat("groups = ", d.groups, " does not divide ic = ", d.ic(), " and oc = ", d.oc());
  }
  // The sizes of a plan are products of some of these, with small factors; its lists have an entry
  // for each tap of a block of src, or for each block of dst.
  const auto at_least_1 = [](int64_t size) { return std::max<int64_t>(1, size); };
  const auto reach = [](const Window1d& w) {
    return Size(w.size) + Size(w.out) * w.stride + Size(w.kernel - 1) * w.dilation + 1;
  };
  const Size src = CeilDiv(at_least_1(d.ic()), kBlock), dst = CeilDiv(at_least_1(d.oc()), kBlock);
  const Size taps = Size(d.kh()) * d.kw();
  const Size all = src * dst * taps * at_least_1(d.n()) * reach(d.windows.h) * reach(d.windows.w);
  if (all.fits() && src * taps <= Size::kMostEntries && dst <= Size::kMostEntries) return "";
  return StrCat("a convolution of ", d.src.ToString(), " to ", d.dst.ToString(), " by ", d.kh(),
                "x", d.kw(), " is too large, with its strides, dilations and padding");
}

}  // namespace bd
