// Convolutions whose groups share blocks of channels, each of which sees its own sources only.
//
// Register tiles (../direct) multiply whole blocks, by weights that are zero for channels of other
// groups; and zero times infinity is NaN. Here lane l of a block of dst, of group g(l), reads what
// lies in lane l, too: row j of the spread source holds channel j of group g(l),
//
//   spread[j][x][l] = src[x][g(l) * inputs + j]       0 <= j < inputs, channels of a group
//   dst[p][l] = sum over kh, j, kw of spread[j][p * sw + kw * dw - pad_left][l] * w[kh][j][kw][l]
//
// which is a depthwise convolution by kh * inputs rows (../depthwise).
#pragma once

#include <cstdint>
#include <string>

#include "cc/core/conv/common/conv_run.h"

namespace bd {

struct LanesPlan {
  int64_t ring = 1;                    // source rows that stay spread
  ScratchPiece<float> spread;          // for each thread: [ring][inputs][iw][16]
  ScratchPiece<const float*> of_taps;  // for each thread: [kh][inputs]
  ScratchPiece<float> row;             // for each thread, of a plain dst: a row twice
};

// Weights are packed [ocb][kh][inputs][kw][16].
BD_CONV_ALGORITHM(Lanes);

}  // namespace bd
