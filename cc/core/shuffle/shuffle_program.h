// Writes programs for the permutation kernels.
#pragma once

#include <cstdint>
#include <vector>

#include "cc/base/function_ref.h"
#include "cc/core/shuffle/shuffle_kernel.h"

namespace bd {

// A program and the memory it needs.
struct ShuffleProgramData {
  std::vector<ShuffleVector> vectors;
  std::vector<int64_t> srcs;
  std::vector<uint8_t> controls;
  int64_t stride = 0;
  int64_t rows_at_once = 0;  // logical rows in a row of the program
  PermuteKernel run = nullptr;

  ShuffleProgram view() const {
    return {vectors.data(), static_cast<int64_t>(vectors.size()), srcs.data(), controls.data(),
            stride};
  }
};

// A row of the program: `pieces` pieces of `piece_bytes` bytes, each contiguous, one
// every `piece_stride` bytes, in src and in dst.
struct ShuffleRow {
  int64_t pieces = 0, piece_bytes = 0, piece_stride = 0;
  int64_t item_bytes = 0;  // 1, 2, 4 or 8, which the permuter is for
};

// src_of(item): the item of src that `item` of dst is, or -1 for a zero; items are
// counted through the pieces. A piece must hold one vector of the permuter at least.
void WriteShuffleProgram(const ShuffleRow& row, const Permuter& permuter,
                         FunctionRef<int64_t(int64_t item)> src_of, ShuffleProgramData* program);

}  // namespace bd
