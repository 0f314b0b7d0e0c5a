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
  if (s.narrow() || s.dst.dtype() != DataType::f32) return "3-D convolution takes float32";
  if (s.groups != 1) return "3-D convolution takes one group";
  if (IsPart(s.src) || IsPart(s.dst) || s.pooled()) {
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
  ConvDesc c = s;
  const int64_t images = desc.volumes == 0 ? 0 : desc.out_depth;
  const auto view = [&](Layout layout, int64_t channels, int64_t h, int64_t w, TensorView* made) {
    return TensorView::Make(DataType::f32, layout, {images, channels, h, w}, 0, made);
  };
  std::string error = view(s.dst.layout(), s.oc(), s.oh(), s.ow(), &c.dst);
  plan->src_slice = s.src.image_elements();
  plan->gathers = s.src.channels_last();
  const bool whole_blocks = !plan->gathers && desc.kd > 1;
  const int64_t channels = desc.kd * (whole_blocks ? s.src.blocks() * s.src.lanes() : s.ic());
  const Layout layout = plan->gathers ? Layout::nhwc : Layout::nChw16c;
  if (error.empty()) error = view(layout, channels, s.ih(), s.iw(), &c.src);
  plan->dst_slice = s.dst.image_elements();
  if (error.empty()) error = MakeConvPlan(c, isa, threads, &plan->conv);
  if (!error.empty()) return error;
  if (!plan->gathers) plan->conv.src_image_stride = desc.sd * plan->src_slice;
  if (plan->empty()) return "";
  const int64_t reach = (desc.out_depth - 1) * desc.sd + desc.kd;
  if (plan->gathers) {
    plan->src = plan->scratch.Book<float>("slices", c.src.elements());
  } else if (desc.pad_front > 0 || reach - desc.pad_front > desc.depth) {
    plan->padded_depth = reach;
    plan->src = plan->scratch.Book<float>("slices", reach * plan->src_slice);
  }
  plan->scratch_of_conv = plan->scratch.Book<char>("convolution", plan->conv.scratch_bytes());
  return "";
}

}  // namespace bd
