// A 1x1 convolution of plain tensors as a product of matrices (cc/core/gemm): a row of A is a
// pixel.
#pragma once

#include <string>

#include "cc/core/conv/common/conv_run.h"
#include "cc/core/gemm/gemm.h"

namespace bd {

struct ConvGemmPlan {
  GemmPlan gemm;
  ScratchPiece<uint8_t> rows;  // what the product needs for them
};

BD_CONV_ALGORITHM(Gemm);

}  // namespace bd
