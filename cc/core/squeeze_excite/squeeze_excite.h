// Squeeze-and-excitation: a scale for each sample and channel from the means of all.
//
//   mean[c]   = sum over pixels of src[c] / pixels
//   hidden[r] = f(reduce_bias[r] + sum over c of mean[c] * reduce_weights[c][r])
//   scale[c]  = g(expand_bias[c] + sum over r of hidden[r] * expand_weights[r][c])
//   dst[c]    = scale[c], or with scale_src src[c] * scale[c] for each pixel
//
// src is dense float32 in blocks of 16. Two rounds of tasks: one takes means of some channel blocks
// and their products at once, the next adds these up and makes some channels of dst. A thread
// begins with the same channels in both.
#pragma once

#include <cstdint>
#include <string>

#include "cc/base/cpu/isa.h"
#include "cc/base/memory/scratch.h"
#include "cc/base/threads/thread_pool.h"
#include "cc/core/post_ops/post_ops.h"
#include "cc/core/squeeze_excite/squeeze_excite_kernel.h"
#include "cc/layout/tensor_view.h"

namespace bd {

struct SqueezeExciteDesc {
  // dst is one pixel, plain or blocked; with scale_src it is as src. Both are dense.
  TensorView src, dst;
  bool scale_src = false;       // dst is src times its scales
  int64_t squeezed = 1;         // values between the two products
  PostOpChain reduce_post_ops;  // f and
  PostOpChain expand_post_ops;  // g: eltwise entries only
};

// One round: units are an image's splits, image by image; a task does some of them.
struct SqueezeExciteRound {
  int64_t splits = 1;  // of an image's channel blocks
  int64_t tasks = 0;
};

// Immutable once made; safe to run on many threads.
struct SqueezeExcitePlan {
  SqueezeExciteDesc desc;
  SqueezeExciteRound reduce, expand;
  const SqueezeExciteKernels* kernels = nullptr;
  Isa isa = Isa::kGeneric;

  ScratchPiece<float> mean;    // of a unit, for each thread
  ScratchPiece<float> sums;    // [n][splits][squeezed]: products of the first round
  ScratchPiece<float> hidden;  // [squeezed], for each thread
  ScratchPiece<float> scales;  // of a unit, for each thread; with scale_src only
  ScratchBook scratch;
};

// Returns an empty string, or one line that names what is wrong: another data type or layout,
// sizes that are none or do not match, or an entry of a chain that reads a tensor.
std::string MakeSqueezeExcitePlan(const SqueezeExciteDesc& desc, Isa isa, int threads,
                                  SqueezeExcitePlan* plan);

// Of one of its chains, which `name` is.
std::string CheckEltwiseOnly(const char* name, const PostOpChain& chain);

struct SqueezeExciteBuffers {
  const float* src = nullptr;
  const float* reduce_weights = nullptr;  // [channels][squeezed]
  const float* reduce_bias = nullptr;     // [squeezed]
  const float* expand_weights = nullptr;  // [squeezed][channels]
  const float* expand_bias = nullptr;     // [channels]
  float* dst = nullptr;                   // with scale_src possibly src
  void* scratch = nullptr;                // plan.scratch.bytes()
};

// `pool` must have no more threads than the plan was made for.
void RunSqueezeExcite(const SqueezeExcitePlan& plan, const SqueezeExciteBuffers& buffers,
                      ThreadPool& pool);

}  // namespace bd
