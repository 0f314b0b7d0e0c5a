// The definition of post-ops, in double, for tests.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "cc/core/post_ops/post_ops.h"

namespace bd {

inline PostOpChain Chain(const std::string& text) {
  PostOpChain chain;
  std::string error;
  EXPECT_TRUE(PostOpChain::Parse(text, &chain, &error)) << error;
  return chain;
}

namespace {

// The result is NaN if x is, since comparisons with NaN are false.
double Clip(double x, double lo, double hi) {
  x = x < lo ? lo : x;
  return x > hi ? hi : x;
}

inline double BinaryRef(BinaryAlg alg, double x, double operand) {
  switch (alg) {
    case BinaryAlg::kAdd:
      return x + operand;
    case BinaryAlg::kSub:
      return x - operand;
    case BinaryAlg::kMul:
      return x * operand;
    case BinaryAlg::kDiv:
      return x / operand;
    case BinaryAlg::kRdiv:
      return operand / x;
    case BinaryAlg::kMax:
      return std::isnan(operand) || operand > x ? operand : x;
    case BinaryAlg::kMin:
      return std::isnan(operand) || operand < x ? operand : x;
    case BinaryAlg::kPrelu:
      return x < 0. ? x * operand : x;
    case BinaryAlg::kDivNoNan:
      return operand == 0. ? 0. : x / operand;
    case BinaryAlg::kFloorDiv:
      return std::floor(static_cast<float>(x) / static_cast<float>(operand));
    case BinaryAlg::kFloorMod: {
      const double rest = std::fmod(x, operand);
      return rest != 0. && (operand < 0.) != (rest < 0.) ? rest + operand : rest;
    }
    case BinaryAlg::kGreater:
      return x > operand;
    case BinaryAlg::kGreaterEqual:
      return x >= operand;
    case BinaryAlg::kLess:
      return x < operand;
    case BinaryAlg::kLessEqual:
      return x <= operand;
    case BinaryAlg::kEqual:
      return x == operand;
    case BinaryAlg::kNotEqual:
      return x != operand;
    case BinaryAlg::kKeep:
      return operand == 0. ? 0. : x;
    case BinaryAlg::kDrop:
      return operand == 0. ? x : -0.;
  }
  return NAN;
}

double Logistic(double x) { return 1. / (1. + std::exp(-x)); }

double SoftRelu(double x) { return (x > 0. ? x : 0.) + std::log1p(std::exp(-std::fabs(x))); }

}  // namespace

// f(x) of EltwiseAlg, without the scale.
inline double EltwiseValueRef(EltwiseAlg alg, double alpha, double beta, double x) {
  switch (alg) {
    case EltwiseAlg::kRelu:
      if (alpha == 0.) return x < 0. ? 0. : x;
      return x < 0. ? alpha * x : x;
    case EltwiseAlg::kLeakyRelu:
      return x < 0. ? alpha * x : x;
    case EltwiseAlg::kRelu6:
      return Clip(x, 0., 6.);
    case EltwiseAlg::kBoundedRelu:
      return Clip(x, 0., alpha);
    case EltwiseAlg::kClip:
      return Clip(x, alpha, beta);
    case EltwiseAlg::kElu:
      return x > 0. ? x : alpha * std::expm1(x);
    case EltwiseAlg::kTanh:
      return std::tanh(x);
    case EltwiseAlg::kSquare:
      return x * x;
    case EltwiseAlg::kAbs:
      return std::fabs(x);
    case EltwiseAlg::kSqrt:
      return std::sqrt(x);
    case EltwiseAlg::kLinear:
      return alpha * x + beta;
    case EltwiseAlg::kSoftRelu:
      return SoftRelu(x);
    case EltwiseAlg::kLogistic:
      return Logistic(x);
    case EltwiseAlg::kExp:
      return std::exp(x);
    case EltwiseAlg::kGeluTanh:  // (1 + tanh(u)) / 2 = logistic(2 u)
      return x * Logistic(2. * std::sqrt(M_2_PI) * (x + 0.044715 * x * x * x));
    case EltwiseAlg::kGeluErf:
      return x * (0.5 * std::erfc(-x * M_SQRT1_2));
    case EltwiseAlg::kSwish:
      return x * Logistic(alpha * x);
    case EltwiseAlg::kHardSigmoid:
      return Clip(alpha * x + beta, 0., 1.);
    case EltwiseAlg::kHardSwish:
      return x * Clip(alpha * x + beta, 0., 1.);
    case EltwiseAlg::kMish:
      return x * std::tanh(SoftRelu(x));
    case EltwiseAlg::kPow:
      return alpha * std::pow(x, beta);
    case EltwiseAlg::kLog:
      return std::log(x);
    case EltwiseAlg::kRound:
      return std::nearbyint(x);
    case EltwiseAlg::kFloor:
      return std::floor(x);
    case EltwiseAlg::kCeil:
      return std::ceil(x);
    case EltwiseAlg::kSign:
      return x > 0. ? 1. : x < 0. ? -1. : x;
    case EltwiseAlg::kReciprocal:
      return 1. / x;
    case EltwiseAlg::kRsqrt:
      return 1. / std::sqrt(x);
    case EltwiseAlg::kSoftsign:
      return x / (1. + std::fabs(x));
    case EltwiseAlg::kExpm1:
      return std::expm1(x);
    case EltwiseAlg::kLog1p:
      return std::log1p(x);
    case EltwiseAlg::kAtan:
      return std::atan(x);
    case EltwiseAlg::kSin:
      return std::sin(x);
    case EltwiseAlg::kCos:
      return std::cos(x);
  }
  return NAN;
}

// One element through the chain. It is element `element` of dst (and of tensor
// and sum operands), in channel `channel`; `sample_channel` is its place in
// sample_channel operands: n * C + c, or n * Cb * 16 + c where dst is blocked.
// args and dst as in BoundPostOps, channel operands unpadded.
inline double ApplyPostOpsRef(const PostOpChain& chain, double x, const float* const* args,
                              const float* dst, int64_t element, int64_t channel,
                              int64_t sample_channel) {
  for (const PostOp& op : chain.entries()) {
    if (op.kind == PostOpKind::kEltwise) {
      x = op.scale * EltwiseValueRef(op.eltwise, op.alpha, op.beta, x);
      continue;
    }
    const float* operand = Resolve(op.operand, args, dst);
    if (op.kind == PostOpKind::kSum) {
      x = op.scale * static_cast<double>(operand[element]) + x;
      continue;
    }
    const int64_t index[] = {0, channel, sample_channel, element};  // in the order of OperandShape
    x = BinaryRef(op.binary, x, operand[index[static_cast<int>(op.shape)]]);
  }
  return x;
}

}  // namespace bd
