// A 3-D convolution as a 2-D one of the slices of its window.
#include <algorithm>

#include "cc/core/conv/conv_volume/conv_volume.h"
#include "cc/core/gemm/gemm_panels.h"

namespace bd {
namespace {

// Channel and scalar operands are the same for all volumes.
OperandShape ShapeOf(const PostOp& op) {
  if (op.kind == PostOpKind::kSum) return OperandShape::kTensor;
  return op.shape == OperandShape::kScalar ? OperandShape::kChannel : op.shape;
}

std::string Check(const ConvVolumeDesc& d) {
  const ConvDesc& s = d.slice;
  if (s.groups != 1) return "3-D convolution takes one group";
  if (s.src_image_blocks > 0 || s.dst_image_blocks > 0 || s.pooled()) {
    return "3-D convolution takes whole tensors and does not pool";
  }
  const std::vector<PostOp>& ops = s.post_ops.entries();
  for (const PostOp& a : ops) {
    for (const PostOp& b : ops) {
      if (a.kind == PostOpKind::kEltwise || b.kind == PostOpKind::kEltwise) continue;
      const bool alike = ShapeOf(a) == ShapeOf(b);
      if (a.operand.input == b.operand.input && !alike) {
        return "a 3-D convolution reads each operand in one shape; pass it twice";
      }
    }
  }
  if (s.post_ops.ReadsDst()) return "a sum of a 3-D convolution needs an operand";
  return "";
}

}  // namespace

std::string MakeConvVolumePlan(const ConvVolumeDesc& desc, Isa isa, int threads,
                               ConvVolumePlan* plan) {
  if (std::string error = Check(desc); !error.empty()) return error;
  *plan = ConvVolumePlan();
  plan->desc = desc;
  const ConvDesc& s = desc.slice;
  const int64_t icb = CeilDiv(s.ic, kBlock);
  ConvDesc c = s;
  c.n = desc.volumes == 0 ? 0 : desc.out_depth;
  plan->gathers = s.src_layout == Layout::nhwc;
  if (plan->gathers) {
    c.ic = desc.kd * s.ic;
    plan->src_slice = s.ih * s.iw * s.ic;
  } else {
    c.ic = desc.kd == 1 ? s.ic : desc.kd * icb * kBlock;
    c.src_image_blocks = desc.sd * icb;
    plan->src_slice = icb * s.ih * s.iw * kBlock;
  }
  const int64_t channels = s.dst_layout == Layout::nhwc ? s.oc : CeilDiv(s.oc, kBlock) * kBlock;
  plan->dst_slice = s.oh * s.ow * channels;
  if (std::string error = MakeConvPlan(c, isa, threads, &plan->conv); !error.empty()) return error;
  if (plan->empty()) return "";
  const int64_t reach = (desc.out_depth - 1) * desc.sd + desc.kd;
  if (plan->gathers) {
    plan->src = plan->scratch.Book<float>("slices", c.n * s.ih * s.iw * c.ic);
  } else if (desc.pad_front > 0 || reach - desc.pad_front > desc.depth) {
    plan->padded_depth = reach;
    plan->src = plan->scratch.Book<float>("slices", reach * plan->src_slice);
  }
  plan->scratch_of_conv = plan->scratch.Book<char>("convolution", plan->conv.scratch_bytes());
  return "";
}

}  // namespace bd
