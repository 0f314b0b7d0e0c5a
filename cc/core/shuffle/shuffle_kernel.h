// What the shuffle kernels do: they fill vectors of dst from windows of src.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"

namespace bd {

// One vector of dst is the union of lanes taken from steps [first_step, first_step +
// num_steps); lanes that no step gives are zero.
struct ShuffleVector {
  int64_t dst;  // bytes from the row's first
  int32_t first_step, num_steps;
};

// A permutation of the bytes of one row, the same for all rows. Step s reads the
// vector at srcs[s] (bytes from the row's first). controls + s * vector_bytes tells
// for every lane of dst which lane of that vector it is; a number whose sign bit is
// set: none.
struct ShuffleProgram {
  const ShuffleVector* vectors;
  int64_t num_vectors;
  const int64_t* srcs;
  const uint8_t* controls;
  int64_t stride;  // bytes from one row to the next, in src and in dst
};

using PermuteKernel = void (*)(const ShuffleProgram& program, const uint8_t* src, uint8_t* dst,
                               int64_t rows);

struct Permuter {
  int32_t vector_bytes;
  // Of a number in the controls. Zero: a vector is a single item, there are no
  // controls, and num_steps <= 1.
  int32_t lane_bytes;
  PermuteKernel run;
};

struct ShuffleKernels {
  Permuter permuters[4];  // of items of 1, 2, 4 and 8 bytes
};

BD_KERNEL_TABLE(ShuffleKernels)

}  // namespace bd
