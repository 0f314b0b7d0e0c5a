#include "cc/core/normalization/layer_norm.h"

#include <algorithm>

#include "cc/base/size.h"
#include "cc/base/str_cat.h"

namespace bd {
namespace {

// Work below kInlineNs is not worth waking a thread for; larger work is cut into tasks of about
// kTaskNs, which are a multiple of the pixels that a kernel takes at once.
constexpr int64_t kInlineNs = 20000, kTaskNs = 10000, kPixels = 8;

// Three passes over a pixel in L1, the first of which brings it there.
constexpr int64_t PixelNs(int64_t channels) { return 6 + channels / 8; }

// Calls body(task, floats before its first pixel, arguments without tensors) for all tasks.
template <typename Body>
void ForTasks(const LayerNormPlan& plan, ThreadPool& pool, Body&& body) {
  const LayerNormDesc& d = plan.desc;
  const int64_t lanes = d.blocked ? RoundUp(d.channels, kBlock) : d.channels;
  pool.ParallelFor(d.images * plan.tasks_per_image, [&](int64_t task, int) {
    const int64_t first = task % plan.tasks_per_image * plan.pixels_per_task;
    LayerNormArgs args = {};
    args.pixels = std::min(plan.pixels_per_task, d.pixels - first);
    args.channels = d.channels;
    args.block_stride = d.blocked ? d.pixels * kBlock : kBlock;
    args.pixel_stride = d.blocked ? kBlock : d.channels;
    args.blocked = d.blocked;
    args.epsilon = d.epsilon;
    args.centered = d.centered;
    const int64_t image = task / plan.tasks_per_image;
    body(task, image * lanes * d.pixels + first * args.pixel_stride, &args);
  });
}

}  // namespace

std::string MakeLayerNormPlan(const LayerNormDesc& desc, Isa isa, LayerNormPlan* plan) {
  if (desc.channels < 1 ||
      !(Size(desc.images) * desc.pixels * RoundUp(desc.channels, kBlock)).fits()) {
    return StrCat(
        "layer normalisation of ", desc.images, " images of ", desc.pixels, " pixels of ",
        desc.channels,
        " channels: sizes must not be negative, nor their product above 2^47, and there must be "
        "a channel");
  }
  LayerNormPlan p;
  p.desc = desc;
  p.kernels = &LayerNormKernelsFor(isa);
  const int64_t pixel_ns = PixelNs(desc.channels);
  const int64_t wanted = desc.images * desc.pixels * pixel_ns < kInlineNs
                             ? desc.pixels
                             : std::min(desc.pixels, kTaskNs / pixel_ns);
  p.pixels_per_task = std::max<int64_t>(1, CeilDiv(wanted, kPixels)) * kPixels;
  p.tasks_per_image = CeilDiv(desc.pixels, p.pixels_per_task);
  *plan = p;
  return "";
}

std::string MakeLayerNormGradPlan(const LayerNormDesc& desc, Isa isa, LayerNormGradPlan* plan) {
  LayerNormGradPlan p;
  if (std::string error = MakeLayerNormPlan(desc, isa, &p.tasks); !error.empty()) return error;
  p.sums = p.scratch.Book<float>("sums", 2 * RoundUp(desc.channels, kBlock),
                                 Size(desc.images) * p.tasks.tasks_per_image);
  *plan = p;
  return p.scratch.Check();
}

void RunLayerNorm(const LayerNormPlan& plan, const float* src, const float* gamma,
                  const float* beta, float* dst, ThreadPool& pool) {
  ForTasks(plan, pool, [&](int64_t, int64_t at, LayerNormArgs* args) {
    args->src = src + at;
    args->dst = dst + at;
    args->gamma = gamma;
    args->beta = beta;
    plan.kernels->forward(*args);
  });
}

void RunLayerNormGrad(const LayerNormGradPlan& plan, const LayerNormGradBuffers& buffers,
                      ThreadPool& pool) {
  const LayerNormDesc& d = plan.tasks.desc;
  const int64_t lanes = RoundUp(d.channels, kBlock), count = d.images * plan.tasks.tasks_per_image;
  const Scratch scratch(buffers.scratch);
  ForTasks(plan.tasks, pool, [&](int64_t task, int64_t at, LayerNormArgs* args) {
    float* const sums = scratch.Grant(plan.sums, task);
    std::fill(sums, sums + 2 * lanes, 0.f);
    args->src = buffers.src + at;
    args->ddst = buffers.ddst + at;
    args->dsrc = buffers.dsrc + at;
    args->gamma = buffers.gamma;
    args->dgamma = sums;
    args->dbeta = sums + lanes;
    plan.tasks.kernels->backward(*args);
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
