// The end of every register tile: what happens to sums before memory. It happens in registers where
// epilogue_inl.h has a way for the types; else by rows, in the one kernel of this table.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"
#include "cc/base/data_type.h"
#include "cc/base/quantization.h"
#include "cc/core/post_ops/post_op_step.h"

namespace bd {

// The tensors after the sums, what is added and C: f32, bf16 or u8.
struct EpilogueTensors {
  ElementType sum, dst;
  int64_t sum_bytes = 4, dst_bytes = 4;  // of an element

  bool floats() const { return sum.dtype == DataType::f32 && dst.dtype == DataType::f32; }
};

// What results are held between, if `clamp` is set.
struct Clamp {
  int32_t clamp = 0;
  float lo = 0.f, hi = 0.f;
};

// What happens to a tile between the accumulators and memory:
//   x = sum * scale * row_scale + bias + acc_scale * acc_in; clamp, or program; store.
//
// C is blocked: [block][row][16], rows 16 elements apart, a last block stored whole, its tail
// zero. Or it is row-major: rows are dst_step elements apart, blocks 16, and of the last block
// only valid_lanes are read and written.
struct TileEpilogue : Clamp {
  // A float a column of the tile's whole blocks, and one a row; or null. Without a scale sums of
  // floats begin at the bias. Those of int32 always have one, zero like the bias where there is no
  // column.
  const float *scale = nullptr, *bias = nullptr, *row_scale = nullptr;
  const void* acc_in = nullptr;  // or null: partial sums, or a tensor to add
  float acc_scale = 0.f;
  const PostOpProgram* program = nullptr;  // null: none
  int32_t silu = 0;                        // the program is x logistic(x) only
  int32_t row_major = 0;
  int64_t dst_offset = 0;  // of the tile's first element in tensors of C's shape
  int64_t channel = 0;     // first column of the tile
  int64_t sample_channel =
      0;                    // of the sample: n * padded columns + channel; row-major: n * channels
  int64_t channels = 0;     // row-major: of a row of the operands of `program`
  int32_t valid_lanes = 0;  // of the tile's last block
  // Elements from a row to the next: of C, of acc_in and of tensors of C's shape; from a block to
  // the next: of C, and of acc_in.
  int64_t dst_step = 16, acc_step = 16, operand_step = 16;
  int64_t dst_block_stride = 16, acc_block_stride = 0;
  EpilogueTensors tensors;

  // To the rows from the next `rows` on; dst is the caller's.
  inline __attribute__((always_inline)) void Advance(int64_t rows) {
    dst_offset += rows * operand_step;
    if (row_scale != nullptr) row_scale += rows;
    if (acc_in != nullptr) {
      acc_in = static_cast<const char*>(acc_in) + rows * acc_step * tensors.sum_bytes;
    }
  }
};

// Sums of a tile, [block][row][16], of float or of int32.
struct TileSums {
  void* at;
  int64_t rows, blocks;
};

// The epilogue by rows, to C from `dst` on; sums are left with anything. Sums of int32 give the
// same bits on every ISA: the kernels round the same operations.
//
// The table is for tiles, each of which calls that of its own set: sets round bfloat16 in two ways.
struct EpilogueKernels {
  void (*of_floats)(const TileEpilogue&, const TileSums&, void* dst);
  void (*of_ints)(const TileEpilogue&, const TileSums&, void* dst);
};

BD_KERNEL_TABLE_OF(EpilogueKernels, generic, avx2, avx2_vnni, avx512, avx512_vnni, avx512_bf16)

}  // namespace bd
