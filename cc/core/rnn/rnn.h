// Recurrent layers on weights that are packed once.
//
//   RnnDesc -> MakeRnnPlan -> RnnPlan (immutable) -> PackRnnWeights -> RunRnn -> RunRnnBackward
//
// With x_t [batch, inputs], W [inputs, gates * units], U [units, gates * units], sums s of a
// gate's columns, f the activation and g the recurrent activation:
//
//   vanilla  h' = f(x W + b + h U)
//   LSTM     i, f, c~, o of s = x W + b + h U:   c' = g(f) c + g(i) f(c~),   h' = g(o) f(c')
//   GRU      z, r of s as above,  h' = z h + (1 - z) h~
//            reset after:   h~ = f(x W_h + b_h + r (h U_h + b'_h)),   b [2, 3 units]
//            reset before:  h~ = f(x W_h + b_h + (r h) U_h),          b [3 units]
//
// One fork runs all steps (parallel_steps.h). A chunk is a block of units and, where units are
// few, a part of the batch; its share of U stays in the L2 of the thread it belongs to. The
// sums of x W + b come first, for many steps at once, into the memory where the step adds h U
// and the cell's element-wise half finds them in L1.
//
// Packed weights are panels of 16 columns, one gate of 16 units, k rows each (rnn_pack.cc);
// they do not depend on the plan's chunks. Those of bfloat16 and of bytes stay in low precision
// (product_kernel.h), since a step of few rows waits for them to come; arithmetic is that of
// floats, and sums are multiplied by the scales of bytes once. Many rows wait for arithmetic: for
// them a call begins by widening weights into scratch, both matrices or, of few samples, W. Where a
// CPU gains from the fast inner product (fip.h), they are scaled for it, and several rows are
// multiplied in pairs; h, which changes with every step, is brought into the form for that by each
// thread for itself, which takes less than a barrier would. With `rounds_rows` and an instruction
// for bfloat16 these rows are rounded instead, and weights are multiplied as they are packed.
#pragma once

#include <cstdint>
#include <string>

#include "cc/base/cpu/isa.h"
#include "cc/base/memory/scratch.h"
#include "cc/base/threads/thread_pool.h"
#include "cc/core/rnn/rnn_cell_kernel.h"
#include "cc/core/rnn/rnn_product.h"
#include "cc/core/rnn/rnn_row_kernel.h"

namespace bd {

struct RnnDesc {
  RnnCell cell = RnnCell::kVanilla;
  RnnActivation activation = RnnActivation::kTanh;
  RnnActivation recurrent_activation = RnnActivation::kLogistic;
  bool reset_after = true;    // GRU
  bool backwards = false;     // from the last step to the first
  bool reorders = false;      // backwards: the output of step t lies at t, not at T - 1 - t
  bool sequences = true;      // the output of every step, or of the last only
  bool zeros_masked = false;  // the output of a masked step is zero, not that before
  bool training = false;      // keeps in the workspace what RunRnnBackward needs
  bool direct = false;        // never in pairs
  bool rounds_rows = false;   // of bf16: x and the states of several rows are multiplied as bf16
  DataType weights = DataType::f32;  // or bf16, s8
  int64_t batch = 0, steps = 0, inputs = 0, units = 0;

  int gates() const { return cell == RnnCell::kLstm ? 4 : cell == RnnCell::kGru ? 3 : 1; }
  int64_t bias_rows() const { return cell == RnnCell::kGru && reset_after ? 2 : 1; }
  // The step whose input and mask step s of the computation takes, and where its output goes.
  int64_t InputStep(int64_t s) const { return backwards ? steps - 1 - s : s; }
  int64_t OutputStep(int64_t s) const { return backwards && reorders ? steps - 1 - s : s; }
};

// A tensor [batch, steps, ..] whose last dimension is dense.
template <typename T>
struct RnnSequence {
  T* data = nullptr;
  int64_t batch_stride = 0, step_stride = 0;
  T* At(int64_t n, int64_t t) const { return data + n * batch_stride + t * step_stride; }
};

constexpr int64_t kRnnMaxBlock = 64;  // units
constexpr int kRnnMaxPanels = 4 * kRnnMaxBlock / kRnnPanel;

// Immutable once made; safe to run on many threads.
struct RnnPlan {
  RnnDesc desc;
  int64_t block = 16;   // units of a chunk, a multiple of 16
  int64_t blocks = 0;   // of them
  int64_t columns = 0;  // of the sums of a row of a chunk
  // Of each panel of a block, its column among the sums of x W, and among those of h U.
  int projected[kRnnMaxPanels] = {}, recurrent[kRnnMaxPanels] = {};
  int64_t part = 0;                         // rows of the batch in a chunk
  int64_t parts = 0;                        // of them
  int64_t steps_at_once = 0;                // whose sums of x W are made together
  RnnMatrix w, u;                           // as they are multiplied
  int64_t segment_steps = 0, segments = 0;  // whose rows are brought into pairs at once
  RnnMatrix packed_w, packed_u;             // as PackRnnWeights leaves them
  bool u_by_row = false;                    // by RnnRowKernels
  int64_t packed_floats = 0;                // what packed weights are as large as
  size_t workspace_bytes = 0;               // training only
  ScratchBook scratch;

  // In the workspace when training, else in scratch.
  ScratchPiece<float> sums;     // [chunk][step][row][columns]
  ScratchPiece<float> hidden;   // [states][batch][units]
  ScratchPiece<float> cell;     // [chunk][states][row][block]
  ScratchPiece<uint8_t> modes;  // [steps][batch], RnnRow
  int64_t states = 0;           // kept: 2 by turns, or steps + 1
  int64_t cells = 0;            // kept: 1, or steps + 1
  // In scratch.
  ScratchPiece<float> bias;      // [block][columns]
  ScratchPiece<float> widened;   // w and u, where they are not as they are packed
  ScratchPiece<float> scales;    // of s8: of W, of U, [panel][16]
  ScratchPiece<float> reset;     // [batch][units]
  ScratchPiece<Bfloat16> split;  // [h, h by turns, r h][upper, lower][row_parts]

  Isa isa = Isa::kGeneric;
  const ProductKernels* product = nullptr;
  const RnnCellKernels* kernels = nullptr;
  const RnnRowKernels* row = nullptr;

  int64_t row_parts() const { return CeilDiv(desc.units, kRnnPanel) * kRnnPanel; }
  int64_t chunks() const { return blocks * parts; }
  // Of W, or of U.
  int64_t panels() const { return CeilDiv(desc.units, kRnnPanel) * desc.gates(); }
};

// Rows of the batch and units of a chunk, which holds them as [row][plan.block].
struct RnnChunk {
  int64_t block, row, rows, unit, units;

  RnnChunk(const RnnPlan& plan, int64_t chunk);
  RnnCellStep Step(const RnnPlan& plan) const;
  // From [batch, units] on, zeros in what is left of the memory, and where that is null; and back.
  void Load(const RnnPlan& plan, const float* from, float* chunk) const;
  void Store(const RnnPlan& plan, const float* chunk, float* to) const;
};

struct RnnBuffers {
  RnnSequence<const float> src;   // [batch, steps, inputs]
  const float* packed = nullptr;  // by PackRnnWeights
  // Of s8, [gates * units] each.
  const float* kernel_scales = nullptr;
  const float* recurrent_scales = nullptr;
  const float* bias = nullptr;  // [bias_rows, gates * units], or null
  const float* h0 = nullptr;    // [batch, units], or null: zero
  const float* c0 = nullptr;
  RnnSequence<const bool> mask;      // true: the step counts; data may be null
  const int32_t* lengths = nullptr;  // steps t >= lengths[n] are masked; or null
  RnnSequence<float> dst;            // [batch, steps, units]; one step of it unless `sequences`
  float* hn = nullptr;               // [batch, units]: the state after all steps
  float* cn = nullptr;               // LSTM
  void* workspace = nullptr;
  void* scratch = nullptr;  // both 64-byte aligned
};

// Returns an empty string, or one line that names what is wrong.
std::string MakeRnnPlan(const RnnDesc& desc, Isa isa, int threads, RnnPlan* plan);

// W is [inputs, gates * units], U [units, gates * units], both dense, of RnnDesc::weights.
void PackRnnWeights(const RnnPlan& plan, const void* kernel, const void* recurrent_kernel,
                    float* packed, ThreadPool& pool);
// What a run begins with, in scratch: scales of bytes, and the bias in the order of the sums, where
// both biases of GRU's z and r add up; and, of panels [first, first + count) of W and of U, weights
// as they are multiplied, where they are packed otherwise.
void OrderRnnScales(const RnnPlan& plan, const RnnBuffers& buffers, float* scales);
void WidenRnnPanels(const RnnPlan& plan, const float* packed, const float* scales, float* widened,
                    int64_t first, int64_t count);
void OrderRnnBias(const RnnPlan& plan, const float* bias, float* ordered);

// RnnRow of [steps][batch]. A masked row keeps the output before, which is zero where no step has
// counted yet.
void FillRnnModes(const RnnDesc& desc, const RnnBuffers& buffers, uint8_t* modes);

void RunRnn(const RnnPlan& plan, const RnnBuffers& buffers, ThreadPool& pool);

}  // namespace bd
