#include <algorithm>

#include "cc/core/normalization/layer_norm.h"

namespace bd {

void RunLayerNormGrad(const LayerNormGradPlan& plan, const LayerNormGradBuffers& buffers,
                      ThreadPool& pool) {
  constexpr int64_t kBlock = 16;
  const LayerNormPlan& tasks = plan.tasks;
  const LayerNormDesc& d = tasks.desc;
  const int64_t lanes = (d.channels + kBlock - 1) / kBlock * kBlock;
  const int64_t pixel_stride = d.blocked ? kBlock : d.channels;
  const int64_t count = d.images * tasks.tasks_per_image;
  const Scratch scratch(buffers.scratch);
  pool.ParallelFor(count, [&](int64_t task, int) {
    const int64_t first = task % tasks.tasks_per_image * tasks.pixels_per_task;
    const int64_t image = task / tasks.tasks_per_image;
    const int64_t at = image * (d.blocked ? lanes : d.channels) * d.pixels + first * pixel_stride;
    float* const sums = scratch.Grant(plan.sums, task);
    std::fill(sums, sums + 2 * lanes, 0.f);
    LayerNormGradArgs args = {};
    args.src = buffers.src + at;
    args.ddst = buffers.ddst + at;
    args.dsrc = buffers.dsrc + at;
    args.gamma = buffers.gamma;
    args.dgamma = sums;
    args.dbeta = sums + lanes;
    args.pixels = std::min(tasks.pixels_per_task, d.pixels - first);
    args.channels = d.channels;
    args.block_stride = d.blocked ? d.pixels * kBlock : kBlock;
    args.pixel_stride = pixel_stride;
    args.blocked = d.blocked;
    args.epsilon = d.epsilon;
    args.centered = d.centered;
    tasks.kernels->grad(args);
  });
  for (int64_t c = 0; c < d.channels; ++c) {
    double dgamma = 0, dbeta = 0;
    for (int64_t task = 0; task < count; ++task) {
      const float* const sums = scratch.Grant(plan.sums, task);
      dgamma += sums[c];
      dbeta += sums[lanes + c];
    }
    buffers.dgamma[c] = static_cast<float>(dgamma);
    buffers.dbeta[c] = static_cast<float>(dbeta);
  }
}

}  // namespace bd
