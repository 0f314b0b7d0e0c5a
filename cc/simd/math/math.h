// Elementary functions on Vec, one polynomial source for every ISA.
//
//   math_exp.h          Exp Expm1 Logistic Tanh TimesLogistic
//   math_log.h          Log Log1p Log1pOfUnit Pow
//   math_trigonometry.h Sin Cos Atan
//   math_simple.h       Square Floor Ceil Sign Reciprocal Rsqrt, and of two values
//   math_activations.h  Softsign SoftRelu Elu Silu Swish Mish GeluTanh GeluErf
//
// Their errors against float64 are bounded on every ISA, over the whole float range, by
// tests/cc/core/post_ops/eltwise_bounds.h, those of functions that no chain runs by
// tests/cc/simd/math/math_test.cc. (Results below FLT_MIN: in multiples of 2^-149.)
//
// Infinities and NaN give what the defining formula gives in IEEE arithmetic:
// x * logistic(x) at -inf is -inf * 0 = NaN, as in TensorFlow. Results below
// FLT_MIN are right while the processor's flush-to-zero mode is off; with it
// on they, and such arguments, count as zero.
#pragma once

#include "cc/simd/math/math_activations.h"
#include "cc/simd/math/math_exp.h"
#include "cc/simd/math/math_log.h"
#include "cc/simd/math/math_simple.h"
#include "cc/simd/math/math_trigonometry.h"
