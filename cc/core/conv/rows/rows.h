// A 1x1 convolution of few pixels as a small-M product on plain weights (cc/core/inner_product).
#pragma once

#include <string>

#include "cc/core/conv/common/conv_run.h"

namespace bd {

struct RowsPlan {
  ScratchPiece<float> row;  // a task's columns of dst, for each thread
};

// Nothing is packed but a note on weights that stay: 1 where all are finite, so that those that
// meet only zeros may be skipped, else 0.
BD_CONV_ALGORITHM(Rows);

}  // namespace bd
