#include <algorithm>

#include "cc/base/threads/parallel_regions.h"
#include "cc/core/post_ops/post_ops_bind.h"
#include "cc/core/squeeze_excite/squeeze_excite.h"

namespace bd {
namespace {

// Channels [begin, end) of image n; `unit` counts the splits of all images.
struct Share {
  int64_t unit, n, begin, end;
};

// Runs body(share, thread) for every unit of a round. A thread begins with the same part of
// the units in both, so it meets again the channels and weights that it has in its caches.
template <typename Body>
void ForUnits(const SqueezeExcitePlan& plan, const SqueezeExciteRound& round, ThreadPool& pool,
              Body body) {
  const TensorView& src = plan.desc.src;
  const int64_t units = src.n() * round.splits;
  ParallelRegions(pool, round.tasks, [&](int64_t task, int thread) {
    const int64_t end = units * (task + 1) / round.tasks;
    for (int64_t unit = units * task / round.tasks; unit < end; ++unit) {
      const int64_t split = unit % round.splits;
      const int64_t first = src.blocks() * split / round.splits * 16;
      const int64_t last = src.blocks() * (split + 1) / round.splits * 16;
      body(Share{unit, unit / round.splits, first, std::min(last, src.c())}, thread);
    }
  });
}

}  // namespace

void RunSqueezeExcite(const SqueezeExcitePlan& plan, const SqueezeExciteBuffers& buffers,
                      ThreadPool& pool) {
  const SqueezeExciteDesc& d = plan.desc;
  const Scratch scratch(buffers.scratch);
  float* sums = scratch.Grant(plan.sums);
  ForUnits(plan, plan.reduce, pool, [&](const Share& share, int thread) {
    ReduceArgs a;
    a.src = buffers.src + d.src.offset(share.n, share.begin / 16, 0);
    a.pixels = d.src.pixels();
    a.channels = share.end - share.begin;
    a.squeezed = d.squeezed;
    a.weights = buffers.reduce_weights + share.begin * d.squeezed;
    a.mean = scratch.Grant(plan.mean, thread);
    a.sums = sums + share.unit * d.squeezed;
    a.expand_weights = share.n == 0 ? buffers.expand_weights + share.begin : nullptr;
    a.expand_stride = d.src.c();
    plan.kernels->reduce(a);
  });
  const BoundPostOps reduce(d.reduce_post_ops, d.squeezed, nullptr, nullptr);
  const BoundPostOps expand(d.expand_post_ops, d.src.c(), nullptr, nullptr);
  const int64_t dst_channels = d.dst.blocks() * d.dst.lanes();
  ForUnits(plan, plan.expand, pool, [&](const Share& share, int thread) {
    ExpandArgs a = {};
    a.sums = sums + share.n * plan.reduce.splits * d.squeezed;
    a.splits = plan.reduce.splits;
    a.squeezed = d.squeezed;
    a.reduce_bias = buffers.reduce_bias;
    a.reduce_program = reduce.program();
    a.hidden = scratch.Grant(plan.hidden, thread);
    a.weights = buffers.expand_weights + share.begin;
    a.weights_stride = d.src.c();
    a.bias = buffers.expand_bias + share.begin;
    a.program = expand.program();
    a.channels = share.end - share.begin;
    a.stored = (share.end == d.src.c() ? dst_channels : share.end) - share.begin;
    a.pixels = d.src.pixels();
    if (d.scale_src) {
      const int64_t offset = d.src.offset(share.n, share.begin / 16, 0);
      a.src = buffers.src + offset;
      a.dst = buffers.dst + offset;
      a.scales = scratch.Grant(plan.scales, thread);
    } else {
      a.scales = buffers.dst + share.n * dst_channels + share.begin;
    }
    plan.kernels->expand(a);
  });
}

}  // namespace bd
