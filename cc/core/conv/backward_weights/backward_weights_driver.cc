#include <algorithm>
#include <cstring>

#include "cc/core/conv/backward_weights/backward_weights.h"
#include "cc/core/conv/backward_weights/backward_weights_kernel.h"
#include "cc/core/gemm/gemm_panels.h"

namespace bd {
namespace {

class Run {
 public:
  Run(const BackwardWeightsPlan& plan, const BackwardWeightsBuffers& buffers)
      : plan_(plan),
        d_(plan.desc),
        b_(buffers),
        kernels_(BackwardWeightsKernelsFor(plan.isa)),
        plain_ddst_(plan.desc.dst.channels_last()) {
    const bool plain_src = d_.src.channels_last();
    const int64_t src_px = plain_src ? d_.ic() : kBlock, ddst_px = plain_ddst_ ? d_.oc() : kBlock;
    const int64_t src_blocks = plain_src ? 1 : CeilDiv(d_.ic(), kBlock);
    const int64_t ddst_blocks = plain_ddst_ ? 1 : CeilDiv(d_.oc(), kBlock);
    tile_.src_step = {d_.sw() * src_px, d_.sh() * d_.iw() * src_px,
                      src_blocks * d_.ih() * d_.iw() * src_px};
    tile_.ddst_step = {ddst_px, d_.ow() * ddst_px, ddst_blocks * d_.oh() * d_.ow() * ddst_px};
    tile_.dweights_row = d_.oc();
    const bool dense = d_.kw() == 1 && d_.sh() == 1 && d_.sw() == 1 && d_.pad_left() == 0;
    joins_rows_ = dense && d_.ow() == d_.iw();
  }

  // Chunks [c0, c1) of units [u0, u1), share `part` of `parts` of their output blocks.
  void Sum(int64_t c0, int64_t c1, int64_t u0, int64_t u1, int64_t part, int64_t parts,
           float* dweights) const {
    for (int64_t c = c0; c < c1; ++c) {
      for (int64_t u = u0; u < u1; ++u) {
        const WeightUnit& unit = plan_.units[u];
        const int64_t blocks = unit.o1 - unit.o0;
        for (int64_t o = unit.o0 + blocks * part / parts; o < unit.o0 + blocks * (part + 1) / parts;
             ++o) {
          SumUnit(unit, o, plan_.chunks[c], c > c0, dweights);
        }
      }
    }
  }

 private:
  void SumUnit(const WeightUnit& unit, int64_t o, const PixelChunk& chunk, bool add,
               float* dweights) const {
    BackwardWeightsTile a = tile_;
    const int64_t column = o * kBlock;
    a.lanes = static_cast<int32_t>(std::min(kBlock, d_.oc() - column));
    const bool narrow = plain_ddst_ && a.lanes < kBlock;
    const float* ddst = b_.ddst + chunk.n0 * a.ddst_step.image +
                        (plain_ddst_ ? column : o * d_.oh() * d_.ow() * kBlock);
    const float* src = b_.src + chunk.n0 * a.src_step.image;
    for (int64_t i = unit.begin; i < unit.end; ++i) {
      const WeightRows& rows = plan_.rows[i];
      // Rows y with 0 <= y sh + kh dh - pad_top < ih.
      const int64_t reach = rows.kh * d_.dh() - d_.pad_top();
      const int64_t y0 = std::max(chunk.y0, reach < 0 ? CeilDiv(-reach, d_.sh()) : 0);
      const int64_t y1 =
          std::min(chunk.y1, reach < d_.ih() ? CeilDiv(d_.ih() - reach, d_.sh()) : 0);
      a.images = chunk.n1 - chunk.n0;
      a.rows = std::max<int64_t>(0, y1 - y0);
      a.px = rows.x1 - rows.x0;
      a.add = add || !rows.first;
      if (a.rows == 0 || a.px == 0) {
        if (a.add) continue;
        a.images = 0;  // zeros
      } else {
        a.src = src + rows.src + y0 * a.src_step.row + rows.x0 * a.src_step.px;
        a.ddst = ddst + y0 * a.ddst_step.row + rows.x0 * a.ddst_step.px;
        if (joins_rows_) {
          a.px *= a.rows;
          a.rows = 1;
        }
      }
      a.dweights = dweights + rows.first_row * d_.oc() + column;
      if (plan_.depthwise) {
        kernels_.depthwise(a);
      } else {
        (narrow ? kernels_.narrow_tile : kernels_.tile)[rows.rows - 1](a);
      }
    }
  }

  const BackwardWeightsPlan& plan_;
  const ConvDesc& d_;
  const BackwardWeightsBuffers& b_;
  const BackwardWeightsKernels& kernels_;
  const bool plain_ddst_;
  BackwardWeightsTile tile_ = {};
  bool joins_rows_;
};

}  // namespace

void RunBackwardWeights(const BackwardWeightsPlan& plan, const BackwardWeightsBuffers& buffers,
                        ThreadPool& pool) {
  const int64_t floats = plan.floats(), units = plan.units.size(), chunks = plan.chunks.size();
  if (floats == 0) return;
  if (chunks == 0) {
    std::memset(buffers.dweights, 0, floats * sizeof(float));
    return;
  }
  const Run run(plan, buffers);
  if (plan.splits == 1) {
    const int64_t parts = plan.block_tasks;
    pool.ParallelFor(plan.unit_tasks * parts, [&](int64_t task, int) {
      const int64_t t = task / parts;
      run.Sum(0, chunks, units * t / plan.unit_tasks, units * (t + 1) / plan.unit_tasks,
              task % parts, parts, buffers.dweights);
    });
    return;
  }
  const Scratch scratch(buffers.scratch);
  const auto sums = [&](int64_t split) {
    return split == 0 ? buffers.dweights : scratch.Grant(plan.sums, split - 1);
  };
  pool.ParallelFor(plan.splits, [&](int64_t s, int) {
    run.Sum(chunks * s / plan.splits, chunks * (s + 1) / plan.splits, 0, units, 0, 1, sums(s));
  });
  constexpr int64_t kTaskFloats = 16 << 10;
  pool.ParallelFor(CeilDiv(floats, kTaskFloats), [&](int64_t task, int) {
    const int64_t first = task * kTaskFloats, count = std::min(kTaskFloats, floats - first);
    for (int64_t s = 1; s < plan.splits; ++s) {
      BackwardWeightsKernelsFor(plan.isa).add(sums(s) + first, count, buffers.dweights + first);
    }
  });
}

}  // namespace bd
