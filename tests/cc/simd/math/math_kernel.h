// The functions of cc/simd/math/math.h over arrays, for the tests.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"

namespace bd {

// y[i] = f(x[i]), n a multiple of 16; `parameter` is alpha or the power where
// f takes one; of silu_of_steps a step.
using MathFunction = void (*)(const float* x, float* y, int64_t n, float parameter);

struct MathKernels {
  MathFunction exp, expm1, logistic, tanh, log, log1p_of_unit, pow;
  MathFunction soft_relu, elu, silu, rough_silu, silu_of_steps, swish, mish, gelu_tanh, gelu_erf,
      round, sqrt;
};

BD_KERNEL_TABLE(MathKernels)

}  // namespace bd
