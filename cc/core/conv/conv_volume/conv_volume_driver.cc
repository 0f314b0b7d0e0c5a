// Runs the 2-D convolution of each volume.
#include <algorithm>
#include <cstring>
#include <vector>

#include "cc/core/conv/conv_volume/conv_volume.h"
#include "cc/core/gemm/gemm_panels.h"

namespace bd {
namespace {

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
    ConvBuffers of_volume;
    of_volume.src = images != nullptr ? images : volume;
    of_volume.packed = buffers.packed;
    of_volume.plain = buffers.plain;  // read by products of matrices only, where rows of all slices
                                      // follow each other as the gathered pixels' do
    of_volume.args = args.data();
    of_volume.dst = buffers.dst + v * d.out_depth * plan.dst_slice;
    of_volume.scratch = scratch.Grant(plan.scratch_of_conv);
    RunConv(plan.conv, of_volume, pool);
  }
}

}  // namespace bd
