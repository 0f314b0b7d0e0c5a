// Runs the convolutions of the phases, then interleaves their results.
#include <algorithm>

#include "cc/core/conv/conv_transpose/conv_transpose.h"
#include "cc/core/conv/conv_transpose/conv_transpose_kernel.h"
#include "cc/core/gemm/gemm_panels.h"
#include "cc/core/post_ops/post_ops_bind.h"

namespace bd {
namespace {

// The rows of one execution.
class Rows {
 public:
  Rows(const ConvTransposePlan& plan, const ConvBuffers& buffers)
      : plan_(plan),
        d_(plan.desc),
        buffers_(buffers),
        scratch_(buffers.scratch),
        ocb_(CeilDiv(d_.oc(), kBlock)),
        plain_(d_.dst.channels_last()),
        program_(d_.post_ops, plan.isa, d_.oc(), buffers.args, buffers.dst) {}

  void Run(int64_t first_image, ThreadPool& pool) {
    pool.ParallelFor(plan_.images * ocb_ * plan_.row_tasks, [&](int64_t task, int) {
      const int64_t begin = task % plan_.row_tasks * plan_.rows_per_task;
      const int64_t image = task / plan_.row_tasks;
      for (int64_t y = begin; y < std::min(d_.oh(), begin + plan_.rows_per_task); ++y) {
        Row(first_image, image / ocb_, image % ocb_, y);
      }
    });
  }

 private:
  void Row(int64_t first_image, int64_t image, int64_t block, int64_t y) const {
    const int64_t n = first_image + image, lanes = plain_ ? d_.oc() : kBlock;
    const int64_t channel = block * kBlock, pixel = y * d_.ow();
    const int64_t own = ((n * ocb_ + block) * d_.oh() * d_.ow() + pixel) * lanes;
    InterleaveArgs a = {};
    a.phases = d_.sw;
    a.px = d_.ow();
    a.dst = buffers_.dst + d_.dst.offset(n, block, pixel);
    a.program = program_.program();
    a.dst_offset = own;
    a.channel = channel;
    a.sample_channel = n * (plain_ ? d_.oc() : ocb_ * kBlock) + channel;
    a.valid_lanes = static_cast<int32_t>(std::min(kBlock, d_.oc() - channel));
    const int64_t q = y % d_.sh, t = y / d_.sh;
    const auto& kernels = ConvTransposeKernelsFor(plan_.isa);
    if (plan_.narrow) {
      int64_t offsets[kMostPhases * kBlock];
      a.base = Channel(image, q * d_.sw, t, 0);
      for (int64_t i = 0; i < d_.sw * d_.oc(); ++i) {
        offsets[i] = Channel(image, q * d_.sw + i / d_.oc(), t, i % d_.oc()) - a.base;
      }
      a.src_step = plan_.convs[0].conv.desc.dst.lanes();
      a.channels = d_.oc();
      a.plain = plain_;
      a.offsets = offsets;
      return kernels.narrow(a);
    }
    const float* phase[kMostPhases];
    for (int64_t p = 0; p < d_.sw; ++p) phase[p] = Source(image, block, q * d_.sw + p, t);
    a.phase = phase;
    kernels.wide(a);
  }

  const PhaseConv& PartOf(int64_t phase) const {
    return plan_.convs[plan_.convs.size() > 1 ? phase : 0];
  }

  // Row t of a block of a phase; any pointer where the phase has no such row.
  const float* Source(int64_t image, int64_t block, int64_t phase, int64_t t) const {
    const PhaseConv& part = PartOf(phase);
    const ConvDesc& c = part.conv.desc;
    const int64_t at = (phase - part.first_phase) * ocb_ + block;
    return scratch_.Grant(part.result) +
           ((image * part.conv.ocb + at) * c.oh() + t) * c.ow() * kBlock;
  }

  // Row t of channel c of a phase, where channels of phases have no gaps between them.
  const float* Channel(int64_t image, int64_t phase, int64_t t, int64_t c) const {
    const PhaseConv& part = PartOf(phase);
    const ConvDesc& conv = part.conv.desc;
    const int64_t at = (phase - part.first_phase) * d_.oc() + c, lanes = conv.dst.lanes();
    return scratch_.Grant(part.result) + conv.dst.offset(image, at / lanes, t * conv.ow()) +
           at % lanes;
  }

  const ConvTransposePlan& plan_;
  const ConvTransposeDesc& d_;
  const ConvBuffers& buffers_;
  const Scratch scratch_;
  const int64_t ocb_;
  const bool plain_;
  const BoundPostOps program_;
};

}  // namespace

void RunConvTranspose(const ConvTransposePlan& plan, const ConvBuffers& buffers, ThreadPool& pool) {
  if (plan.empty()) return;
  const ConvTransposeDesc& d = plan.desc;
  const Scratch scratch(buffers.scratch);
  Rows rows(plan, buffers);
  for (int64_t n = 0; n < d.n(); n += plan.images) {
    for (const PhaseConv& part : plan.convs) {
      if (part.is_zero()) {
        std::fill_n(scratch.Grant(part.result), part.result.count, 0.f);
        continue;
      }
      ConvBuffers of_part;
      of_part.src = buffers.src + d.src.offset(n, 0, 0);
      of_part.packed = buffers.packed + part.packed;
      of_part.dst = scratch.Grant(part.result);
      of_part.scratch = scratch.Grant(part.scratch);
      RunConv(part.conv, of_part, pool);
    }
    rows.Run(n, pool);
  }
}

}  // namespace bd
