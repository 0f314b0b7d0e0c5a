// The plain structs that per-ISA kernels see of a post-op chain.
#pragma once

#include <cstdint>

namespace bd {

enum class PostOpKind : int32_t { kEltwise, kSum, kBinary };

enum class EltwiseAlg : int32_t {
  kRelu,         // x >= 0 ? x : alpha x; alpha = 0 by default
  kLeakyRelu,    // the same, alpha always given
  kRelu6,        // min(max(x, 0), 6)
  kBoundedRelu,  // min(max(x, 0), alpha)
  kClip,         // min(max(x, alpha), beta)
  kElu,          // x > 0 ? x : alpha (exp(x) - 1); alpha = 1
  kTanh,
  kSquare,
  kAbs,
  kSqrt,
  kLinear,    // alpha x + beta; 1, 0
  kSoftRelu,  // log(1 + exp(x)); also softplus
  kLogistic,  // 1 / (1 + exp(-x)); also sigmoid
  kExp,
  kGeluTanh,     // x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
  kGeluErf,      // x/2 (1 + erf(x / sqrt(2)))
  kSwish,        // x logistic(alpha x); alpha = 1; also silu
  kHardSigmoid,  // min(max(alpha x + beta, 0), 1); 1/6, 1/2
  kHardSwish,    // x hard_sigmoid(x)
  kMish,         // x tanh(soft_relu(x))
  kPow,          // alpha x^beta; alpha = 1
  kLog,
  kRound,  // to the nearest integer, halves to even
};

enum class BinaryAlg : int32_t { kAdd, kSub, kMul, kDiv, kMax, kMin, kPrelu };

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
};

struct PostOpProgram {
  const PostOpStep* steps;
  int32_t count;
  int32_t preserves_zero;  // no tail to clear after the chain
};

}  // namespace bd
