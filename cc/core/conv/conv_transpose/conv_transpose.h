// Transposed convolution: what the gradient of a strided convolution by its source computes.
//
//   dst[y, x, o] = sum over kh, kw, i of src[r, c, i] * weights[kh, kw, o, i]
//                  where  r * sh + kh = y + pad_top,  c * sw + kw = x + pad_left
//
// Along an axis of stride s only taps k = a + s j, a = (q + pad) mod s, reach pixels y = s t + q of
// phase q, and they read r = t + b - j, b = floor((q + pad) / s). So each phase is an ordinary
// convolution of stride 1 by the taps that are its own, and the phases interleave:
//
//   apart     a convolution for each phase: no product more than the definition has
//   together  one convolution whose output channels are those of all phases, by taps that span
//             those of all, zeros where a phase has none: for few channels, and where Winograd
//             saves more than the zeros cost; direct only without such zeros, which times infinity
//             are NaN
//
//   conv_transpose.cc         the phases as convolutions, then rows of dst out of their results
//   conv_transpose_kernel.cc  a row of dst: interleaves phases, runs the chain
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cc/core/conv/conv.h"

namespace bd {

constexpr int64_t kMostPhases = 16;  // along an axis

// src is nChw16c, dst of either layout; weights are [kh, kw, oc, ic].
struct ConvTransposeDesc {
  TensorView src, dst;  // which may be parts of wider nChw16c tensors
  int64_t kh = 1, kw = 1, sh = 1, sw = 1;
  int64_t pad_top = 0, pad_left = 0;  // rows and columns that are cut off before the first of dst
  ConvAlgorithm algorithm = ConvAlgorithm::kAuto;
  bool changes_weights = false;  // as in ConvDesc
  PostOpChain post_ops;

  int64_t n() const { return src.n(); }
  int64_t ic() const { return src.c(); }
  int64_t ih() const { return src.h(); }
  int64_t iw() const { return src.w(); }
  int64_t oc() const { return dst.c(); }
  int64_t oh() const { return dst.h(); }
  int64_t ow() const { return dst.w(); }
  int64_t phases() const { return sh * sw; }
};

// The taps of one phase, or of several, along an axis: those that read source pixels
// [t + first, t + last] for pixel t of the phase, in ascending order.
struct PhaseTaps {
  int64_t first = 0, last = -1;
  int64_t count() const { return last - first + 1; }
  bool operator==(const PhaseTaps& other) const {
    return first == other.first && last == other.last;
  }
};

// A convolution of the source, whose output channels are those of `phases`, one after the other,
// `stride` apart. Phase p is (p / sw, p % sw).
struct PhaseConv {
  ConvPlan conv;
  int64_t first_phase = 0, phases = 1, stride = 0;
  PhaseTaps h, w;
  bool is_zero() const { return h.count() == 0 || w.count() == 0; }  // no tap reaches the phase
  int64_t packed = 0;          // floats before its packed weights
  ScratchPiece<float> result;  // [images]
  ScratchPiece<char> scratch;
};

struct ConvTransposePlan {
  ConvTransposeDesc desc;
  Isa isa = Isa::kGeneric;
  int threads = 1;
  std::vector<PhaseConv> convs;
  bool narrow = false;  // fewer than 16 channels: those of phases follow each other without gaps
  int64_t images = 1;   // of src and dst that are computed at a time
  PackKey pack_key;
  int64_t packed_bytes = 0;
  int64_t row_tasks = 1, rows_per_task = 1;  // of one block of an image
  ScratchBook scratch;

  bool empty() const { return desc.n() * desc.oh() * desc.ow() * desc.oc() == 0; }
  const char* algorithm_name() const { return convs.size() == 1 ? "together" : "apart"; }
};

// The source pixels that phase q of stride s reads, relative to its own; none where no tap reaches
// it.
PhaseTaps TapsOfPhase(int64_t kernel, int64_t stride, int64_t pad, int64_t phase);

// Fills *plan; returns an empty string or one line saying what is wrong.
std::string MakeConvTransposePlan(const ConvTransposeDesc& desc, Isa isa, int threads,
                                  ConvTransposePlan* plan);

// `packed` holds plan.packed_bytes, 64-byte aligned; `src` as in PackConvWeights.
void PackConvTransposeWeights(const ConvTransposePlan& plan, const float* weights, float* packed,
                              ThreadPool& pool, const float* src = nullptr);
// As ConvWeightsExponent.
int ConvTransposeExponent(const ConvTransposePlan& plan, const float* src);

// Buffers as for RunConv; the previous dst is what sums without an operand read.
void RunConvTranspose(const ConvTransposePlan& plan, const ConvBuffers& buffers, ThreadPool& pool);

}  // namespace bd
