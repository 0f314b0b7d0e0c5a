// Contract between the RNN's backward driver and the kernels of a cell's derivative.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"
#include "cc/core/rnn/rnn_cell_kernel.h"

namespace bd {

// One step of the rows and units of a block, on the way back. `gates` are the activated gates
// as the forward pass left them. With D x the derivative of the loss by x:
//
//   dh = carry + d_out;   from it d_sums = D (x W + b),   carry = D h of the step before, but
//   for the share that comes through U, which the driver adds.
struct RnnGradArgs {
  RnnActivation activation, recurrent_activation;
  int64_t rows, block, units;
  const float* gates;
  int64_t gates_stride;
  const uint8_t* modes;  // RnnRow of each row; null: all run
  const float* h;        // the state before
  int64_t h_stride;
  const float* c;  // LSTM: the cell before and after
  const float* c_next;
  float* dc;     // D c, of the step after and then of this one
  float* carry;  // as dc: rows of c_stride
  int64_t c_stride;
  const float* d_out;  // or null: zero
  int64_t d_out_stride;
  float* d_sums;  // gate g of unit u at g * gate_stride + u
  int64_t d_sums_stride, gate_stride;
  float* d_recurrent;  // GRU, reset after: the same of h U + b'; else null
  float* before;       // where the state before goes, for the derivative of U
  int64_t before_stride;
  // GRU, reset before: D (r h) of the driver's product, and where r h goes, as `before`.
  const float* d_reset;
  float* reset;
};

using RnnGradFn = void (*)(const RnnGradArgs&);

struct RnnGradKernels {
  RnnGradFn vanilla, lstm;
  RnnGradFn gru_after;
  RnnGradFn gru_before, gru_gates;  // before: z and h~; then r, once D (r h) is known
};

BD_KERNEL_TABLE(RnnGradKernels)

}  // namespace bd
