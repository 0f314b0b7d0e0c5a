// Elementary functions on Vec, one polynomial source for every ISA.
//
//   math_exp.h          Exp Expm1 Logistic Tanh TimesLogistic
//   math_log.h          Log Log1p Log1pOfUnit Pow
//   math_trigonometry.h Sin Cos Atan
//   math_simple.h       Square Floor Ceil Sign Reciprocal Rsqrt, and of two values
//   math_activations.h  Softsign SoftRelu Elu Silu Swish Mish GeluTanh GeluErf
//
// Error against float64 in units of the last place of the float result (below
// FLT_MIN: multiples of 2^-149), over the whole float range. `bound` is what
// tests/cc/simd/math/math_test.cc holds every ISA to; `seen` is the largest met in
// at least one float of 23, on generic (no fused multiply-add) and on avx2 and
// avx512 (which did not differ).
//
//                bound  seen: generic  fused
//   Exp            1.1           1.01   1.04
//   Expm1, Elu     1.1           1.00   0.95   alpha = 1; bound 1.8 (seen 1.59) with another
//   Logistic       2.4           2.30   2.30   avx2: 2.03, avx512: 2.22 in the short way's reach
//   Tanh           2.7           2.50   2.50
//   Log            0.9           0.80   0.80
//   Log1pOfUnit    2.1           1.95   1.95
//   Pow            1.6           1.27   1.39   |y| <= 20; bound 6 (seen 4.88) beyond
//   SoftRelu       2.9           2.70   2.70
//   Silu           3.6           2.94          avx2: 2.77, avx512: 3.28; Silu<true> to 2^-13
//   Swish          3.6           3.24   3.27
//   Mish           4.5           4.13   4.13
//   GeluTanh       3.3           3.02   3.02
//   GeluErf        5.5           5.24   4.47   of the larger of the result and x/2
//   Sqrt, Round    exact
//   all others     tests/cc/core/post_ops/eltwise_bounds.h
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
