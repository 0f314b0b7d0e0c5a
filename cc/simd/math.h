// Elementary functions on Vec, one polynomial source for every ISA.
//
//   math_exp.h          Exp Expm1 Logistic Tanh TimesLogistic
//   math_log.h          Log Log1pOfUnit Pow
//   math_activations.h  SoftRelu Elu Swish Mish GeluTanh GeluErf
//
// Largest error in units of the last place of the float nearest to the exact
// value (below FLT_MIN: multiples of 2^-149), over all 2^32 floats; measured
// against float64 on generic (no fused multiply-add) and on avx2 and avx512:
//
//                  generic  fused                    generic  fused
//   Exp               0.00   0.00   SoftRelu            0.00   0.00
//   Log               0.00   0.00   Elu, Expm1          0.00   0.00
//   Tanh              0.00   0.00   Swish               0.00   0.00
//   Logistic          0.00   0.00   Mish                0.00   0.00
//   Pow               0.00   0.00   GeluTanh            0.00   0.00
//                                   GeluErf             0.00   0.00
//
// Infinities and NaN give what the defining formula gives in IEEE arithmetic:
// x * logistic(x) at -inf is -inf * 0 = NaN, as in TensorFlow. Results below
// FLT_MIN are right while the processor's flush-to-zero mode is off; with it
// on they, and such arguments, count as zero.
#ifndef CC_SIMD_MATH_H_
#define CC_SIMD_MATH_H_

#include "cc/simd/math_activations.h"
#include "cc/simd/math_exp.h"
#include "cc/simd/math_log.h"

#endif  // CC_SIMD_MATH_H_
