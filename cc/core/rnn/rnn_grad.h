// Backward through a recurrent layer: from the derivatives of its outputs to those of its sums.
//
//   RunRnn (training) -> workspace -> MakeRnnGradPlan -> PackRnnGradWeights -> RunRnnGrad
//
// What is left are products over all steps at once, for whoever has a matrix product: with
// S = D (x W + b) and R = D (h U + b') as rows of all steps and samples,
//   D x = S W^T,   D W = x^T S,   D b = sum of S,   D U = h^T R,   D b' = sum of R.
#pragma once

#include "cc/core/rnn/rnn.h"
#include "cc/core/rnn/rnn_grad_kernel.h"

namespace bd {

struct RnnGradPlan {
  RnnPlan forward;
  int64_t packed_floats = 0;
  int column[kRnnMaxBlock / kRnnPanel] = {};  // of a panel of U, transposed, among a block's units
  ScratchBook scratch;
  ScratchPiece<float> carry, cell, reset;  // [chunk][row][block]
  const RnnGradKernels* kernels = nullptr;
};

// Sequences have the strides of the layer's source: step t of it, not of the computation.
struct RnnGradBuffers {
  const float* packed = nullptr;
  const void* workspace = nullptr;  // of RunRnn
  bool masked = false;              // whether that had a mask or lengths
  RnnSequence<const float> d_dst;   // [batch, steps, units], or of one step; in dst's order
  const float* d_hn = nullptr;      // [batch, units], or null
  const float* d_cn = nullptr;
  RnnSequence<float> d_sums;       // rows of gates * units
  RnnSequence<float> d_recurrent;  // GRU with reset_after: the same of h U + b'; else no data
  RnnSequence<float> before;       // rows of units: h before each step
  RnnSequence<float> reset;        // GRU, reset before: r h, which met U's third gate
  float* d_h0 = nullptr;           // [batch, units]
  float* d_c0 = nullptr;           // LSTM
  void* scratch = nullptr;
};

// `desc.training` must be set, and `threads` what RunRnn's plan had.
std::string MakeRnnGradPlan(const RnnDesc& desc, Isa isa, int threads, RnnGradPlan* plan);

void PackRnnGradWeights(const RnnGradPlan& plan, const float* recurrent_kernel, float* packed,
                        ThreadPool& pool);

void RunRnnGrad(const RnnGradPlan& plan, const RnnGradBuffers& buffers, ThreadPool& pool);

}  // namespace bd
