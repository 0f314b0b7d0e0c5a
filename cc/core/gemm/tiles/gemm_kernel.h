// Contract between the one loop over panels (gemm_panels.h) and its per-ISA register tiles.
//
// A tile multiplies `px` rows of A by a panel of `blocks` blocks of 16 columns of B. A is a
// list of taps, each a run of consecutive floats, so that a row may be pixels of several rows
// and channel blocks of a tensor (a batch-reduce GEMM):
//
//   C[p][16 b + lane] = sum_t sum_i a[tap_offsets[t] + p * px_stride + i]
//                                   * weights[t][i][b][lane]
//
// `taps` of them are tap_length floats long, `tail_taps` after those tail_length. A row-major
// matrix of any K is one tap, or several of equal length and a shorter one.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"
#include "cc/core/gemm/tiles/epilogue_kernel.h"

namespace bd {

// What tiles of the fast inner product add to their sums: fip_kernel.h.
struct FipTerms {
  const float* pixel_terms;    // a float a row
  const float* channel_terms;  // and a column of the tile
};

struct TileArgs {
  const float* src;  // A
  const int64_t* tap_offsets;
  int64_t taps, tap_length;
  int64_t tail_taps, tail_length;
  int64_t px_stride;     // floats between rows
  int64_t unit;          // of low precision: bytes that px_stride counts
  const float* weights;  // the panel's packed rows of B
  // Brought to L2 alongside: from `prefetch`, prefetch_step floats for each row of weights.
  const float* prefetch;
  int64_t prefetch_step;
  float* dst;     // C, of whatever type; the epilogue says how its rows lie
  int64_t tiles;  // neighbouring tiles of A and C, one after the other
  FipTerms fip;
  const int32_t* start;  // of bytes: where the sums of a column begin
  TileEpilogue epilogue;
};

// Tiles by rows - 1.
using TileKernel = void (*)(const TileArgs&);

constexpr int kMaxTilePixels = 14;
constexpr int kMaxTileBlocks = 2;

struct GemmKernels {
  int tile_blocks;  // blocks the widest panel has
  int tile_pixels;  // rows the widest tile has
  // Where panels have one block: rows of tiles of a panel that takes half a last block in.
  // 0: there are none.
  int joined_tile_pixels;
  // [blocks - 1][px - 1]. px_stride == 16 and tap_length == 16:
  TileKernel tile[kMaxTileBlocks][kMaxTilePixels];
  // The same where the last block has at most 8 columns.
  TileKernel half_tile[kMaxTileBlocks][kMaxTilePixels];
  // Any px_stride and tap_length.
  TileKernel strided_tile[kMaxTileBlocks][kMaxTilePixels];
};

BD_KERNEL_TABLE(GemmKernels)

}  // namespace bd
