// Batch normalisation of a training step, of dense nChw16c tensors. With M = n * pixels values a
// channel and r = 1 / sqrt(variance + epsilon):
//
//   mean = sum x / M,  variance = sum (x - mean)^2 / M
//   y    = gamma r (x - mean) + beta
//
// and backward, where dmean and dvariance are the gradients of the moments as results:
//
//   dbeta = sum dy,  dgamma = r sum dy (x - mean)
//   dx    = gamma r (dy - dbeta / M - r (x - mean) dgamma / M)
//           + dmean / M + 2 (x - mean) dvariance / M
//
// Where a ReLU or ReLU6 stood after y, ddst may be the gradient of its result: then dy is ddst
// where y, which is computed again, lies inside the clamp, and 0 elsewhere.
//
// Each way is two passes over the tensors, all that the definition allows. A thread takes a block
// of channels through both, so that the second one finds it in cache; where blocks are fewer than
// threads would share evenly, threads share images, and each pass waits for the one before. Sums
// are of float over runs of pixels and of double over runs, in the same order whoever makes them.
// Those of squares are of x less the channel's first value, so that a mean far from zero costs no
// digits.
//
//   batch_norm_driver.cc   both ways over threads
//   batch_norm_kernel.cc   per-ISA loops; batch_norm_kernel.h is their contract
#pragma once

#include <cstdint>

#include "cc/base/cpu/isa.h"
#include "cc/base/memory/scratch.h"
#include "cc/base/size.h"
#include "cc/base/threads/thread_pool.h"
#include "cc/core/normalization/batch_norm_kernel.h"

namespace bd {

struct BatchNormDesc {
  int64_t n = 0, channels = 0, pixels = 0;
  float epsilon = 0.f;

  int64_t blocks() const { return CeilDiv(channels, kBlock); }
};

struct BatchNormPlan {
  BatchNormDesc desc;
  Isa isa = Isa::kGeneric;
  bool by_block = true;  // or one pass after the other, by block and image
  ScratchBook scratch;
  ScratchPiece<double> sums;  // [block][n][2][16]
};

// Any sizes; with no values there are no moments to speak of: mean and variance are 0.
BatchNormPlan MakeBatchNormPlan(const BatchNormDesc& desc, Isa isa, int threads);

struct BatchNormArgs {
  const float* src = nullptr;
  const float *gamma = nullptr, *beta = nullptr;  // [channels]
  float* dst = nullptr;
  float *mean = nullptr, *variance = nullptr;  // [channels]
  void* scratch = nullptr;
};
void RunBatchNorm(const BatchNormPlan& plan, const BatchNormArgs& args, ThreadPool& pool);

struct BatchNormGradArgs {
  const float *src = nullptr, *ddst = nullptr;
  const float *gamma = nullptr, *beta = nullptr, *mean = nullptr, *variance = nullptr;
  const float *dmean = nullptr, *dvariance = nullptr;
  float* dsrc = nullptr;  // may be ddst
  float *dgamma = nullptr, *dbeta = nullptr;
  void* scratch = nullptr;
  BatchNormClamp clamp = BatchNormClamp::kNone;  // after dst
};
void RunBatchNormGrad(const BatchNormPlan& plan, const BatchNormGradArgs& args, ThreadPool& pool);

// Batch normalisation by given moments folded into the linear op before it. With
// f = gamma / sqrt(variance + epsilon),
//
//   gamma (w x + bias - mean) / sqrt(variance + epsilon) + beta
//     = (f w) x + (f (bias - mean) + beta)
//
// so the op's weights are scaled by channel, and one row of channels is all that is added to it.

// Weights [outer, channels, inner], for example HWIO with inner = 1.
struct FoldBatchNormDesc {
  int64_t outer = 0, channels = 0, inner = 1;
  float epsilon = 0.f;
};

struct FoldBatchNormArgs {
  const float* weights = nullptr;
  const float *bias = nullptr, *gamma = nullptr, *beta = nullptr;  // [channels], these and
  const float *mean = nullptr, *variance = nullptr;
  float* folded = nullptr;  // as weights
  float* shift = nullptr;   // [channels]
};

void FoldBatchNorm(const FoldBatchNormDesc& desc, const FoldBatchNormArgs& args, ThreadPool& pool);

}  // namespace bd
