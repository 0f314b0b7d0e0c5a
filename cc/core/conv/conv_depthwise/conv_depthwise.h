// A 1x1 convolution and the depthwise one that reads it, as one primitive: the
// expanded tensor between them, often six times as large as what is read and
// written, never reaches memory.
//
//   conv_depthwise_plan.cc     one pass or two, rows a step, splits
//   conv_depthwise_driver.cc   tasks over threads: tiles into a ring, rows out of it
//
// Fused, a task takes output groups of the 1x1 and a range of output rows. Group
// by group it expands a few source rows at a time into a ring that stays in L2 and
// runs the depthwise rows that these complete. Tasks of neighbouring rows expand
// the rows they share each for itself.
//
// Both halves compute what they compute in two passes, in the same order: results are
// equal bit for bit, but where the 1x1 multiplies in pairs (cc/core/gemm/fip.h). Its sums round
// by the magnitude of the rows that a task reads, and one pass has other tasks than two.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cc/core/conv/conv.h"

namespace bd {

// A task of each image: output groups of the first times output rows.
struct PairPart {
  int64_t group_begin, group_end, row_begin, row_end;
};

struct ConvDepthwisePlan {
  ConvPlan first, depthwise;  // as they run in two passes
  bool fused = false;         // otherwise one after the other, through scratch

  // A step expands step_rows rows of a group; the ring holds ring_steps steps.
  int64_t step_rows = 0, ring_steps = 0;
  int64_t group_blocks = 0;  // output blocks that a step expands, at most
  std::vector<PairPart> parts;

  // What the halves book, the ring of each thread, or the tensor between them.
  ScratchPiece<char> first_scratch, depthwise_scratch;
  ScratchPiece<float> ring, between;
  ScratchBook scratch;
  const char* algorithm_name() const { return fused ? "fused" : "apart"; }
};

// `depthwise` has one input and one output channel a group and reads what `first`
// writes; all tensors are nChw16c. Fills *plan; returns an empty string or one line
// saying what is wrong.
std::string MakeConvDepthwisePlan(const ConvDesc& first, const ConvDesc& depthwise, Isa isa,
                                  int threads, ConvDepthwisePlan* plan);

// Weights are packed by PackConvWeights for plan.first and plan.depthwise.
struct ConvDepthwiseBuffers {
  const float* src = nullptr;
  const float *first_packed = nullptr, *depthwise_packed = nullptr;
  const float *const *first_args = nullptr, *const *depthwise_args = nullptr;
  float* dst = nullptr;     // see ConvBuffers
  void* scratch = nullptr;  // plan.scratch.bytes(); 64-byte aligned to be fast
};

// `pool.num_threads()` must equal that of the plan.
void RunConvDepthwise(const ConvDepthwisePlan& plan, const ConvDepthwiseBuffers& buffers,
                      ThreadPool& pool);

}  // namespace bd
