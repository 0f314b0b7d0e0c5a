// Contract of the fast inner product (FIP): register tiles that multiply channels in pairs.
//
// Two products of a sum as one (Winograd, "A New Algorithm for Inner Product", IEEE
// Transactions on Computers C-17, 1968), with s = 1 or -1:
//
//   x1 y1 + x2 y2 = s (y2 + s x1) (y1 + s x2)  -  s x1 x2  -  s y1 y2
//
// The last two terms depend on the pixel alone and on the output channel alone; they are
// summed separately, once for all channels and once for all pixels. So a pair costs one
// multiply-add and two additions. Zen 4 adds on pipes of its own beside those
// that multiply: of 16 channels, 5 pairs and 6 products by themselves take 11 cycles a
// 512-bit vector instead of 16 (measured on tiles in L1: 164 GFLOP/s where multiply-adds
// alone reach 116).
//
// The signs alternate, because x1 x2 is mostly positive after a ReLU: the partial sums
// would grow with the number of channels otherwise.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"
#include "cc/core/gemm/tiles/gemm_kernel.h"

namespace bd {

// Channels c and c + 1 of a block of 16 that are a pair, with its sign.
struct ChannelPair {
  int c;
  float sign;
};
constexpr ChannelPair kChannelPairs[] = {{0, 1.f}, {2, -1.f}, {4, 1.f}, {8, -1.f}, {12, 1.f}};
constexpr int kNumChannelPairs = 5;
constexpr int kSingleChannels[] = {6, 7, 10, 11, 14, 15};

// Of px pixels 16 floats apart, over all taps: terms[p] = - sum over pairs of s x1 x2, squares[p] =
// sum of x^2, sums[p] = sum of |x|.
struct FipSourceArgs {
  const float* src;
  const int64_t* tap_offsets;
  int64_t taps, px;
  float* terms;
  float* squares;
  float* sums;
};

// Rows that may not be multiplied in pairs (fip.h): unpaired[r] becomes 1 unless squares[r] <=
// most, sums[r]^2 >= shape * squares[r] and all[r] >= least. `all` is sums, or what sums are added
// to.
struct FipRangeArgs {
  const float* squares;
  const float* sums;
  float* all;
  int64_t rows;
  float most, shape, least;
  uint8_t* unpaired;
};

constexpr int kMaxFipPixels = 10;

struct FipKernels {
  int tile_pixels;  // 0: this ISA has none of them
  // As GemmKernels::tile and half_tile, with TileArgs::fip.
  TileKernel tile[kMaxTileBlocks][kMaxTilePixels];
  TileKernel half_tile[kMaxTileBlocks][kMaxTilePixels];
  float (*source_terms)(const FipSourceArgs&);  // returns the sum of all squares
  bool (*mark_unpaired)(const FipRangeArgs&);   // returns whether any row is unpaired
  // dst[i] = scale * src[i] for whole vectors of 16; dst may be src.
  void (*scale)(const float* src, float scale, int64_t floats, float* dst);
  // Of 16 columns of weights, rows row_stride floats apart: sums of squares and of magnitudes, in
  // order; columns times factors; - sum of s y1 y2 over the pairs of `taps` times 16 rows.
  void (*column_sums)(int64_t rows, int64_t row_stride, const float* weights, double* squares,
                      double* sums);
  void (*scale_columns)(int64_t rows, int64_t row_stride, const float* factors, float* weights);
  void (*column_terms)(int64_t taps, int64_t row_stride, const float* weights, float* terms);
};

BD_KERNEL_TABLE(FipKernels)

}  // namespace bd
