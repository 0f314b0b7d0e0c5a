// The functions of cc/simd/math/math.h over arrays, for the tests.
#pragma once

#include <cstdint>

#include "cc/base/cpu/kernel_table.h"

namespace bd {

// y[i] = f(x[i]), n a multiple of 16; `step` is that of silu_of_steps.
using MathFunction = void (*)(const float* x, float* y, int64_t n, float step);

struct MathKernels {
  MathFunction logistic, silu, rough_silu, silu_of_steps;
};

BD_KERNEL_TABLE(MathKernels)

}  // namespace bd
