#include "cc/core/post_ops/post_ops.h"

#include <cstdio>

#include "cc/core/post_ops/post_op_names.h"

namespace bd {
namespace {

// 9 significant digits bring back the same float.
std::string Number(const char* key, float value) {
  char text[32];
  snprintf(text, sizeof text, ",%s=%.9g", key, value);
  return text;
}

std::string Parameter(const char* key, const PostOpParameter& parameter, float value) {
  const bool print = parameter.use == PostOpParameter::kRequired ||
                     (parameter.use == PostOpParameter::kOptional && value != parameter.fallback);
  return print ? Number(key, value) : "";
}

std::string Operand(const OperandRef& ref) {
  const std::string offset = ref.offset == 0 ? "" : "@" + std::to_string(ref.offset);
  return "#" + std::to_string(ref.input) + offset;
}

std::string ToString(const PostOp& op) {
  const std::string scale = op.scale == 1.f ? "" : Number("scale", op.scale);
  switch (op.kind) {
    case PostOpKind::kEltwise: {
      const EltwiseWords& words = WordsOf(op.eltwise);
      return "eltwise(" + std::string(words.name) + Parameter("alpha", words.alpha, op.alpha) +
             Parameter("beta", words.beta, op.beta) + scale + ")";
    }
    case PostOpKind::kSum:
      return "sum(" + Operand(op.operand) + scale + ")";
    case PostOpKind::kBinary:
      return std::string("binary(") + NameOf(op.binary) + "," + NameOf(op.shape) + "," +
             Operand(op.operand) + ")";
  }
  return "";
}

bool EltwisePreservesZero(const PostOp& op) {
  switch (op.eltwise) {
    case EltwiseAlg::kSoftRelu:
    case EltwiseAlg::kLogistic:
    case EltwiseAlg::kExp:
    case EltwiseAlg::kLog:
      return false;
    case EltwiseAlg::kBoundedRelu:
      return op.alpha >= 0.f;
    case EltwiseAlg::kClip:
      return op.alpha <= 0.f && op.beta >= 0.f;
    case EltwiseAlg::kLinear:
      return op.beta == 0.f;
    case EltwiseAlg::kHardSigmoid:
      return op.beta <= 0.f;
    case EltwiseAlg::kPow:
      return op.beta > 0.f;
    default:
      return true;
  }
}

// Is the operand read exactly where dst is written, so that they may share memory?
bool ReadInPlace(const PostOp& op) {
  return (op.kind == PostOpKind::kSum || op.shape == OperandShape::kTensor) &&
         op.operand.offset == 0;
}

}  // namespace

PostOp EltwisePostOp(EltwiseAlg alg) {
  PostOp op;
  op.eltwise = alg;
  op.alpha = WordsOf(alg).alpha.fallback;
  op.beta = WordsOf(alg).beta.fallback;
  return op;
}

std::string PostOpChain::ToString() const {
  std::string text;
  for (const PostOp& op : entries_) text += (text.empty() ? "" : ";") + bd::ToString(op);
  return text;
}

bool PostOpChain::PreservesZero() const {
  for (const PostOp& op : entries_) {
    if (op.kind == PostOpKind::kEltwise && !EltwisePreservesZero(op)) return false;
    if (op.kind == PostOpKind::kBinary &&
        (op.shape == OperandShape::kScalar || op.binary == BinaryAlg::kDiv)) {
      return false;
    }
  }
  return true;
}

int PostOpChain::SumInput() const {
  int input = -1;
  for (const PostOp& op : entries_) {
    if (op.kind == PostOpKind::kSum && input < 0) input = op.operand.input;
  }
  for (const PostOp& op : entries_) {
    if (op.kind != PostOpKind::kEltwise && op.operand.input == input && !ReadInPlace(op)) return -1;
  }
  return input;
}

}  // namespace bd
