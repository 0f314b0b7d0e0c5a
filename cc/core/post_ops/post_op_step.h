// The plain structs that per-ISA kernels see of a post-op chain.
#pragma once

#include <cstdint>

#include "cc/base/quantization.h"

namespace bd {

enum class PostOpKind : int32_t { kEltwise, kSum, kBinary };

// Functions of x alone, a row each, which is all that another one needs outside cc/simd/math:
//   X(function, word, alias, op, zero)
//   function   in cc/simd/math, of a Vec
//   word       what the text calls it; alias: another word that is accepted, or ""
//   op         TensorFlow's, in whose place the rewriter puts it; "" where there is none
//   zero       whether it takes 0 to 0
#define BD_ELTWISE_FUNCTIONS(X)                                                              \
  X(Tanh, "tanh", "", "Tanh", true)                                                          \
  X(Square, "square", "", "Square", true)                                                    \
  X(Abs, "abs", "", "Abs", true)                                                             \
  X(Sqrt, "sqrt", "", "Sqrt", true)                                                          \
  X(SoftRelu, "soft_relu", "softplus", "Softplus", false) /* log(1 + exp(x)) */              \
  X(Logistic, "logistic", "sigmoid", "Sigmoid", false)    /* 1 / (1 + exp(-x)) */            \
  X(Exp, "exp", "", "Exp", false)                                                            \
  X(GeluTanh, "gelu_tanh", "", "", true) /* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */ \
  X(GeluErf, "gelu_erf", "", "", true)   /* x/2 (1 + erf(x / sqrt(2))) */                    \
  X(Mish, "mish", "", "", true)          /* x tanh(soft_relu(x)) */                          \
  X(Log, "log", "", "Log", false)                                                            \
  X(Round, "round", "", "Round", true) /* to an integer, halves to even */                   \
  X(Floor, "floor", "", "Floor", true)                                                       \
  X(Ceil, "ceil", "", "Ceil", true)                                                          \
  X(Sign, "sign", "", "Sign", true) /* -1, 0 or 1 */                                         \
  X(Reciprocal, "reciprocal", "", "Reciprocal", false)                                       \
  X(Rsqrt, "rsqrt", "", "Rsqrt", false)         /* 1 / sqrt(x) */                            \
  X(Softsign, "softsign", "", "Softsign", true) /* x / (1 + |x|) */                          \
  X(Expm1, "expm1", "", "Expm1", true)                                                       \
  X(Log1p, "log1p", "", "Log1p", true)                                                       \
  X(Atan, "atan", "", "Atan", true)                                                          \
  X(Sin, "sin", "", "Sin", true)                                                             \
  X(Cos, "cos", "", "Cos", false)

enum class EltwiseAlg : int32_t {
  kRelu,         // x >= 0 ? x : alpha x; alpha = 0 by default
  kLeakyRelu,    // the same, alpha always given
  kRelu6,        // min(max(x, 0), 6)
  kBoundedRelu,  // min(max(x, 0), alpha)
  kClip,         // min(max(x, alpha), beta)
  kElu,          // x > 0 ? x : alpha (exp(x) - 1); alpha = 1
  kLinear,       // alpha x + beta; 1, 0
  kSwish,        // x logistic(alpha x); alpha = 1; also silu
  kHardSigmoid,  // min(max(alpha x + beta, 0), 1); 1/6, 1/2
  kHardSwish,    // x hard_sigmoid(x)
  kPow,          // alpha x^beta; alpha = 1
#define BD_ROW(name, ...) k##name,
  BD_ELTWISE_FUNCTIONS(BD_ROW)
#undef BD_ROW
};
#define BD_ROW(...) +1
constexpr int kNumEltwiseAlgs = static_cast<int>(EltwiseAlg::kPow) + 1 BD_ELTWISE_FUNCTIONS(BD_ROW);
#undef BD_ROW

// Functions of x and an operand o, likewise: X(algorithm, function, word, op, zero), where zero is
// whether 0 and 0 give 0.
#define BD_BINARY_FUNCTIONS(X)                                                            \
  X(Add, Add, "add", "AddV2", true)                                                       \
  X(Sub, Sub, "sub", "Sub", true)                                                         \
  X(Mul, Mul, "mul", "Mul", true)                                                         \
  X(Div, Div, "div", "RealDiv", false)                                                    \
  X(Rdiv, ReversedDiv, "rdiv", "", false) /* o / x */                                     \
  X(Max, MaxOrNan, "max", "Maximum", true)                                                \
  X(Min, MinOrNan, "min", "Minimum", true)                                                \
  X(Prelu, Prelu, "prelu", "", true)                    /* x >= 0 ? x : o x */            \
  X(DivNoNan, DivNoNan, "div_no_nan", "DivNoNan", true) /* x / o; 0 where o is 0 */       \
  X(FloorDiv, FloorDiv, "floor_div", "FloorDiv", false) /* floor(x / o) */                \
  X(FloorMod, FloorMod, "floor_mod", "FloorMod", false) /* x - o floor(x / o), exactly */ \
  X(Greater, IsGreater, "greater", "Greater", true)     /* comparisons give 1 or 0 */     \
  X(GreaterEqual, IsGreaterEqual, "greater_equal", "GreaterEqual", false)                 \
  X(Less, IsLess, "less", "Less", true)                                                   \
  X(LessEqual, IsLessEqual, "less_equal", "LessEqual", false)                             \
  X(Equal, IsEqual, "equal", "Equal", false)                                              \
  X(NotEqual, IsNotEqual, "not_equal", "NotEqual", true)                                  \
  X(Keep, Keep, "keep", "", true) /* x where o is not 0, else 0 */                        \
  X(Drop, Drop, "drop", "", true) /* x where o is 0, else -0 */

enum class BinaryAlg : int32_t {
#define BD_ROW(name, ...) k##name,
  BD_BINARY_FUNCTIONS(BD_ROW)
#undef BD_ROW
};

// Shape of a binary operand against a dst [N, C, spatial]:
enum class OperandShape : int32_t {
  kScalar,         // one element
  kChannel,        // [C]: one element a channel
  kSampleChannel,  // [N, C]: blocked [N, Cb, 1, 1, 16] where dst is blocked
  kTensor,         // dst's shape and layout
};

// One entry, operand bound to memory. Channel operands are padded to a
// multiple of 16 elements (with zeros) where dst is blocked.
struct PostOpStep {
  PostOpKind kind;
  EltwiseAlg eltwise;
  BinaryAlg binary;
  OperandShape shape;
  float alpha, beta, scale;
  const float* operand;
  ElementType type;  // of a sum's operand, where dst is blocked: float32, bfloat16 or uint8
};

struct PostOpKernels;

struct PostOpProgram {
  const PostOpStep* steps;
  int32_t count;
  int32_t preserves_zero;        // no tail to clear after the chain
  const PostOpKernels* kernels;  // those that run it (post_ops_kernel.h)
};

}  // namespace bd
