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

// One step of the rows and units of a block. `gates` holds the sums before activation, gate
// after gate of `block` units each: LSTM i f c o; GRU z r h, and the recurrent share of h
// where the reset gate comes after the product; vanilla one gate. With `keeps` activated gates
// take their place, for the backward pass.
struct RnnCellArgs {
  RnnActivation activation, recurrent_activation;
  bool keeps;
  int64_t rows;
  int64_t block;  // units of a gate in `gates`, a multiple of 16
  int64_t units;  // of the block's units those that exist
  float* gates;
  int64_t gates_stride;
  const uint8_t* modes;  // RnnRow of each row; null: all run
  const float* h;        // the state before
  float* h_next;
  int64_t h_stride;
  const float* c;  // LSTM; may be c_next
  float* c_next;
  int64_t c_stride;
  float* reset;  // GRU with the reset gate before the product: r * h, as h lies
  float* out;    // or null
  int64_t out_stride;
};

using RnnCellFn = void (*)(const RnnCellArgs&);

struct RnnCellKernels {
  RnnCellFn vanilla, lstm;
  RnnCellFn gru_after;              // reset gate after the product
  RnnCellFn gru_gates, gru_before;  // before: z, r and `reset`; then the rest
};

BD_KERNEL_TABLE(RnnCellKernels)

}  // namespace bd
