// Contract between the RNN's backward driver and the kernels of a cell's derivative.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"
#include "cc/core/rnn/rnn_cell_kernel.h"

namespace bd {

// `gates` are the activated gates as the forward pass left them. With D x the derivative of the
// loss by x:
//
//   dh = carry + d_out;   from it d_sums = D (x W + b),   carry = D h of the step before, but
//   for the share that comes through U, which the driver adds.
struct RnnGradArgs : RnnCellStep {
  explicit RnnGradArgs(const RnnCellStep& step) : RnnCellStep(step) {}

  const float* gates = nullptr;
  const float* c_next = nullptr;  // LSTM: the cell after
  float* dc = nullptr;            // D c, of the step after and then of this one
  float* carry = nullptr;         // as dc: rows of c_stride
  const float* d_out = nullptr;   // or null: zero
  int64_t d_out_stride = 0;
  float* d_sums = nullptr;  // gate g of unit u at g * gate_stride + u
  int64_t d_sums_stride = 0, gate_stride = 0;
  float* d_recurrent = nullptr;  // GRU, reset after: the same of h U + b'; else null
  float* before = nullptr;       // where the state before goes, for the derivative of U
  int64_t before_stride = 0;
  // GRU, reset before: D (r h) of the driver's product, and where r h goes, as `before`.
  const float* d_reset = nullptr;
  float* reset = nullptr;
};

using RnnGradFn = void (*)(const RnnGradArgs&);

struct RnnGradKernels {
  RnnGradFn vanilla, lstm;
  RnnGradFn gru_after;
  RnnGradFn gru_before, gru_gates;  // before: z and h~; then r, once D (r h) is known
};

BD_KERNEL_TABLE(RnnGradKernels)

}  // namespace bd
