// Windows over an NHWC source (first layers). Tiles inside the image read it where it
// is; those that reach over its left or right edge read a copy of their columns with
// zeros around, and kernel rows above and below the image are left out. Copying whole
// rows took 15 % of a layer of 3 channels and stride 2.
#ifndef CC_CORE_CONV_CONV_IMAGE_H_
#define CC_CORE_CONV_CONV_IMAGE_H_

#include <algorithm>
#include <cstdint>

#include "cc/core/conv/conv_run.h"

namespace bd {

// An output row in tiles: the first `wide` ones have narrow + 1 pixels, the others
// narrow. Tiles [left, right) are inside the image.
struct ImageRow {
  int64_t tiles, narrow, wide;
  int64_t left, right;
  int64_t left_columns, right_columns;  // of the source, in the copies

  int64_t FirstPixel(int64_t tile) const { return tile * narrow + std::min(tile, wide); }
};

ImageRow SplitImageRow(const ConvDesc& d, int64_t widest_tile);

// A task of form kPlainTile that is not in place.
void RunImageTask(const ConvRun& run, const TaskRange& r, const TileTarget& target, int thread);

}  // namespace bd

#endif  // CC_CORE_CONV_CONV_IMAGE_H_
