// Contract between the RNN's drivers and the kernels of the element-wise half of a cell.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"

namespace bd {

enum class RnnCell { kVanilla, kLstm, kGru };
enum class RnnActivation { kTanh, kLogistic, kRelu, kLinear, kHardLogistic };

// What happens to a row in a step.
enum RnnRow : uint8_t {
  kRnnRuns = 0,
  kRnnKeeps = 1,  // masked: the state stays, and the output is that of the step before
  kRnnZeros = 2,  // masked: the state stays, and the output is zero
};

// A step of the rows and units of a block, forward or backward.
struct RnnCellStep {
  RnnActivation activation, recurrent_activation;
  int64_t rows;
  int64_t block;  // units of a gate in `gates`, a multiple of 16
  int64_t units;  // of the block's units those that exist
  int64_t gates_stride, h_stride, c_stride;
  const uint8_t* modes = nullptr;  // RnnRow of each row; null: all run
  const float* h = nullptr;        // the state before
  const float* c = nullptr;        // LSTM: the cell before
};

// `gates` holds the sums before activation, gate after gate of `block` units each: LSTM i f c o;
// GRU z r h, and the recurrent share of h where the reset gate comes after the product; vanilla one
// gate. With `keeps` activated gates take their place, for the backward pass.
struct RnnCellArgs : RnnCellStep {
  explicit RnnCellArgs(const RnnCellStep& step) : RnnCellStep(step) {}

  bool keeps = false;
  float* gates = nullptr;
  float* h_next = nullptr;
  float* c_next = nullptr;  // LSTM; may be c
  float* reset = nullptr;   // GRU with the reset gate before the product: r * h, as h lies
  float* out = nullptr;     // or null
  int64_t out_stride = 0;
};

using RnnCellFn = void (*)(const RnnCellArgs&);

struct RnnCellKernels {
  RnnCellFn vanilla, lstm;
  RnnCellFn gru_after;              // reset gate after the product
  RnnCellFn gru_gates, gru_before;  // before: z, r and `reset`; then the rest
};

BD_KERNEL_TABLE(RnnCellKernels)

}  // namespace bd
