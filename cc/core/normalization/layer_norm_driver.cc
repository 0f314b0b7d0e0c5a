#include <algorithm>

#include "cc/core/normalization/layer_norm.h"

namespace bd {

void RunLayerNorm(const LayerNormPlan& plan, const float* src, const float* gamma,
                  const float* beta, float* dst, ThreadPool& pool) {
  constexpr int64_t kBlock = 16;
  const LayerNormDesc& d = plan.desc;
  const int64_t of_pixel = d.blocked ? kBlock : d.channels;
  const int64_t blocks = d.blocked ? (d.channels + kBlock - 1) / kBlock : 1;
  const auto kernel = d.blocked ? plan.kernels->blocked : plan.kernels->plain;
  pool.ParallelFor(d.images * plan.tasks_per_image, [&](int64_t task, int) {
    const int64_t first = task % plan.tasks_per_image * plan.pixels_per_task;
    const int64_t at =
        task / plan.tasks_per_image * blocks * d.pixels * of_pixel + first * of_pixel;
    LayerNormArgs args = {};
    args.src = src + at;
    args.dst = dst + at;
    args.gamma = gamma;
    args.beta = beta;
    args.pixels = std::min(plan.pixels_per_task, d.pixels - first);
    args.channels = d.channels;
    args.block_stride = d.pixels * kBlock;
    args.epsilon = d.epsilon;
    args.centered = d.centered;
    kernel(args);
  });
}

}  // namespace bd
