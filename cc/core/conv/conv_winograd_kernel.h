// Contract between the Winograd driver and its per-ISA transforms.
//
// F(m x m, 3x3), alpha = m + 2:  y = A^T [ (G g G^T) . (B^T d B) ] A  (Lavin and
// Gray, "Fast Algorithms for Convolutional Neural Networks", 2015), from Toom
// and Cook's interpolation at alpha - 1 points p and infinity:
//   A^T[k][i] = p_i^k          B^T[i] = coefficients of prod_{j != i} (x - p_j)
//   G[i]      = (1, p_i, p_i^2) / prod_{j != i} (p_i - p_j)
// m = 2 interpolates at 0, 1, -1. m = 4 interpolates at 0, +-5/7, +-7/5: their
// error is half that of 0, +-1, +-2 because the powers stay near one.
#ifndef CC_CORE_CONV_CONV_WINOGRAD_KERNEL_H_
#define CC_CORE_CONV_CONV_WINOGRAD_KERNEL_H_

#include <cstdint>

#include "cc/base/kernel_table.h"
#include "cc/core/conv/conv_epilogue.h"

namespace bd {

constexpr double kWinogradA = 5.0 / 7.0;
constexpr double kWinogradB = 7.0 / 5.0;

// One source block: patches of alpha x alpha pixels, m apart -> the alpha^2
// planes of the transformed source.
struct WinogradSourceArgs {
  const float* src;  // the block's plane [ih][iw][16]
  int64_t ih, iw;
  int64_t y, x;          // of the first patch; may lie outside: zero there
  int64_t tiles;         // patches along the row
  float* dst;            // [xi][..][tile][16], plane 0, first tile
  int64_t plane_stride;  // floats between planes
};

// One output block: the alpha^2 planes -> tiles of m x m pixels, epilogue applied.
struct WinogradDstArgs {
  const float* src;  // plane 0, first tile
  int64_t plane_stride;
  float* dst;  // the block's plane [oh][ow][16]
  int64_t oh, ow;
  int64_t y, x;           // first pixel of the first tile
  int64_t tiles;          // along the row
  TileEpilogue epilogue;  // acc_in and dst_offset are those of the block's plane
};

struct WinogradKernels {
  // [0]: m = 2, [1]: m = 4
  void (*source[2])(const WinogradSourceArgs&);
  void (*dst[2])(const WinogradDstArgs&);
};

BD_KERNEL_TABLE(WinogradKernels)

}  // namespace bd

#endif  // CC_CORE_CONV_CONV_WINOGRAD_KERNEL_H_
