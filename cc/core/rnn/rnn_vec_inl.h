// What the kernels of cells and of their gradients share.
#pragma once

#include "cc/core/rnn/rnn_cell_kernel.h"
#include "cc/simd/math/math_activations.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

inline Vec Activate(RnnActivation activation, Vec x) {
  switch (activation) {
    case RnnActivation::kTanh:
      return Tanh(x);
    case RnnActivation::kLogistic:
      return Logistic(x);
    case RnnActivation::kRelu:
      return Max(Zero(), x);
    case RnnActivation::kHardLogistic:  // relu6(x + 3) / 6
      return Mul(Min(Set1(6.f), Max(Zero(), Add(x, Set1(3.f)))), Set1(1.f / 6.f));
    default:
      return x;
  }
}

}  // namespace
}  // namespace bd::BD_ISA
