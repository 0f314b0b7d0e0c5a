#include "cc/core/conv/conv_volume/conv_volume.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "cc/base/size.h"
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
  if (std::min({d.volumes, d.depth, d.out_depth, d.kd - 1, d.sd - 1, d.pad_front}) < 0) {
    return "3-D convolution takes sizes of 0 and more, and kernels and strides of 1 and more";
  }
  if (s.low_precision() || s.dst.dtype() != DataType::f32) return "3-D convolution takes float32";
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

// The slices of a volume between slices of zeros.
void Pad(const ConvVolumePlan& plan, const float* volume, float* padded, ThreadPool& pool) {
  const ConvVolumeDesc& d = plan.desc;
  pool.ParallelFor(plan.padded_depth, [&](int64_t slice, int) {
    const int64_t from = slice - d.pad_front;
    float* to = padded + slice * plan.src_slice;
    if (from < 0 || from >= d.depth) {
      std::memset(to, 0, plan.src_slice * sizeof(float));
    } else {
      std::memcpy(to, volume + from * plan.src_slice, plan.src_slice * sizeof(float));
    }
  });
}

// Of each output slice, the pixels of kd slices side by side.
void Gather(const ConvVolumePlan& plan, const float* volume, float* images, ThreadPool& pool) {
  const ConvVolumeDesc& d = plan.desc;
  const int64_t pixels = d.slice.ih() * d.slice.iw(), ic = d.slice.ic(), wide = d.kd * ic;
  pool.ParallelFor(d.out_depth, [&](int64_t out, int) {
    float* image = images + out * pixels * wide;
    for (int64_t k = 0; k < d.kd; ++k) {
      const int64_t from = out * d.sd + k - d.pad_front;
      const bool inside = from >= 0 && from < d.depth;
      const float* slice = volume + (inside ? from * plan.src_slice : 0);
      for (int64_t p = 0; p < pixels; ++p) {
        for (int64_t c = 0; c < ic; ++c) {
          image[p * wide + k * ic + c] = inside ? slice[p * ic + c] : 0.f;
        }
      }
    }
  });
}

// One more than the last that the chain names.
int Inputs(const PostOpChain& chain) {
  int inputs = 0;
  for (const PostOp& op : chain.entries()) {
    if (op.kind != PostOpKind::kEltwise) inputs = std::max(inputs, op.operand.input + 1);
  }
  return inputs;
}

// Operands of volume v.
void Advance(const ConvVolumePlan& plan, const float* const* args, int64_t v,
             std::vector<const float*>* of_volume) {
  const ConvVolumeDesc& d = plan.desc;
  const int64_t channels = d.slice.dst.blocks() * d.slice.dst.lanes();
  for (const PostOp& op : d.slice.post_ops.entries()) {
    if (op.kind == PostOpKind::kEltwise) continue;
    const int input = op.operand.input;
    const bool tensor = op.kind == PostOpKind::kSum || op.shape == OperandShape::kTensor;
    const bool sample = !tensor && op.shape == OperandShape::kSampleChannel;
    const int64_t step = tensor ? plan.dst_slice : sample ? channels : 0;
    (*of_volume)[input] = args[input] + v * d.out_depth * step;
  }
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
  const Size channels = Size(desc.kd) * (whole_blocks ? s.src.blocks() * s.src.lanes() : s.ic());
  const Layout layout = plan->gathers ? Layout::nhwc : Layout::nChw16c;
  if (error.empty()) error = view(layout, channels.value(), s.ih(), s.iw(), &c.src);
  plan->dst_slice = s.dst.image_elements();
  if (error.empty()) error = MakeConvPlan(c, isa, threads, &plan->conv);
  if (!error.empty()) return error;
  if (!plan->gathers) plan->conv.src_image_stride = (Size(desc.sd) * plan->src_slice).value();
  if (plan->empty()) return "";
  const int64_t reach = (Size(desc.out_depth - 1) * desc.sd + desc.kd).value();
  if (plan->gathers) {
    plan->src = plan->scratch.Book<float>("slices", c.src.elements());
  } else if (desc.pad_front > 0 || reach - desc.pad_front > desc.depth) {
    plan->padded_depth = reach;
    plan->src = plan->scratch.Book<float>("slices", Size(reach) * plan->src_slice);
  }
  plan->scratch_of_conv = plan->scratch.Book<char>("convolution", plan->conv.scratch.bytes());
  return plan->scratch.Check();
}

void PackConvVolumeWeights(const ConvVolumePlan& plan, const float* weights, float* packed,
                           ThreadPool& pool) {
  const ConvVolumeDesc& d = plan.desc;
  const ConvDesc& s = d.slice;
  const ConvDesc& c = plan.conv.desc;
  const int64_t taps = s.kh() * s.kw(), padded = c.ic() / d.kd;  // source channels of a slice
  std::vector<float> hwio(taps * c.ic() * c.oc(), 0.f);
  pool.ParallelFor(d.kd * taps, [&](int64_t task, int) {
    const int64_t k = task / taps, tap = task % taps;
    std::memcpy(hwio.data() + (tap * c.ic() + k * padded) * c.oc(),
                weights + task * s.ic() * c.oc(), s.ic() * c.oc() * sizeof(float));
  });
  PackConvWeights(plan.conv, hwio.data(), packed, pool);
}

void RunConvVolume(const ConvVolumePlan& plan, const ConvBuffers& buffers, ThreadPool& pool) {
  if (plan.empty()) return;
  const ConvVolumeDesc& d = plan.desc;
  const Scratch scratch(buffers.scratch);
  std::vector<const float*> args(Inputs(d.slice.post_ops), nullptr);
  float* const images = scratch.Grant(plan.src);
  for (int64_t v = 0; v < d.volumes; ++v) {
    const float* volume = buffers.src + v * d.depth * plan.src_slice;
    if (plan.gathers) {
      Gather(plan, volume, images, pool);
    } else if (images != nullptr) {
      Pad(plan, volume, images, pool);
    }
    Advance(plan, buffers.args, v, &args);
    // Plain weights are read by products of matrices only, where rows of all slices follow each
    // other as the gathered pixels' do.
    RunConv(plan.conv,
            {images != nullptr ? images : volume, buffers.packed, args.data(),
             buffers.dst + v * d.out_depth * plan.dst_slice, scratch.Grant(plan.scratch_of_conv),
             buffers.plain},
            pool);
  }
}

}  // namespace bd
