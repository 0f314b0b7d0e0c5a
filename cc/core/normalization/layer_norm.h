// Normalisation of each pixel over its channels:
//
//   dst[p][c] = (src[p][c] - mean_p) / sqrt(variance_p + epsilon) * gamma[c] + beta[c]
//
// mean_p and variance_p are those of the C channels of pixel p; the variance is the mean of the
// squared distances from the mean. Where it is not `centered`, mean_p is 0 in both places, so that
// each pixel is divided by its root mean square.
//
//   LayerNormDesc -> MakeLayerNormPlan -> LayerNormPlan (immutable) -> RunLayerNorm
//
// src and dst are both [images, ceil(C / 16), pixels, 16], with zeros after channel C, or both
// plain [images, pixels, C].
#pragma once

#include <cstdint>
#include <string>

#include "cc/base/cpu/isa.h"
#include "cc/base/memory/scratch.h"
#include "cc/base/threads/thread_pool.h"
#include "cc/core/normalization/layer_norm_kernel.h"

namespace bd {

struct LayerNormDesc {
  int64_t images = 0, pixels = 0, channels = 0;
  bool blocked = false;
  float epsilon = 0.f;
  bool centered = true;
};

// Immutable once made; safe to run on many threads.
struct LayerNormPlan {
  LayerNormDesc desc;
  int64_t tasks_per_image = 0, pixels_per_task = 0;
  const LayerNormKernels* kernels = nullptr;
};

// Returns an empty string, or one line that names what is wrong.
std::string MakeLayerNormPlan(const LayerNormDesc& desc, Isa isa, LayerNormPlan* plan);

// gamma and beta hold `channels` elements. dst may be src.
void RunLayerNorm(const LayerNormPlan& plan, const float* src, const float* gamma,
                  const float* beta, float* dst, ThreadPool& pool);

// Backward, of either layout. With i = 1 / sqrt(variance_p + epsilon) and
// n = (src - mean_p) i, sums over the channels of a pixel or over pixels:
//
//   dbeta[c] = sum_p ddst,  dgamma[c] = sum_p ddst n
//   dsrc = i (g - (sum_c g + n sum_c g n) / C)  where g = ddst gamma
//
// and without sum_c g where it is not centered.
struct LayerNormGradPlan {
  LayerNormPlan tasks;
  ScratchBook scratch;
  ScratchPiece<float> sums;  // of each task, dgamma and dbeta
};
std::string MakeLayerNormGradPlan(const LayerNormDesc& desc, Isa isa, LayerNormGradPlan* plan);

struct LayerNormGradBuffers {
  const float *src, *ddst;
  const float* gamma;
  float* dsrc;  // may be ddst
  float *dgamma, *dbeta;
  void* scratch;
};
void RunLayerNormGrad(const LayerNormGradPlan& plan, const LayerNormGradBuffers& buffers,
                      ThreadPool& pool);

}  // namespace bd
