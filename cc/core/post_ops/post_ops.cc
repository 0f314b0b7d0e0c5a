#include "cc/core/post_ops/post_ops.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cc/base/size.h"
#include "cc/base/str_cat.h"
#include "cc/core/post_ops/post_op_names.h"
#include "cc/core/post_ops/post_ops_kernel.h"

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
  if (ref.input == OperandRef::kDst) return "";
  const std::string offset = ref.offset == 0 ? "" : "@" + std::to_string(ref.offset);
  return StrCat("#", ref.input, offset);
}

bool EltwisePreservesZero(const PostOp& op) {
  switch (op.eltwise) {
#define BD_ROW(function, word, alias, op, zero) \
  case EltwiseAlg::k##function:                 \
    return zero;
    BD_ELTWISE_FUNCTIONS(BD_ROW)
#undef BD_ROW
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

bool BinaryPreservesZero(BinaryAlg alg) {
#define BD_ROW(name, function, word, op, zero) zero,
  constexpr bool kZero[] = {BD_BINARY_FUNCTIONS(BD_ROW)};
#undef BD_ROW
  return kZero[static_cast<int>(alg)];
}

bool IsSum(const PostOp& op) { return op.kind == PostOpKind::kSum; }

bool IsChannelOperand(const PostOp& op) {
  return op.kind == PostOpKind::kBinary && op.shape == OperandShape::kChannel;
}

}  // namespace

PostOp EltwisePostOp(EltwiseAlg alg) {
  return EltwisePostOp(alg, WordsOf(alg).alpha.fallback, WordsOf(alg).beta.fallback);
}

PostOp EltwisePostOp(EltwiseAlg alg, float alpha, float beta, float scale) {
  PostOp op;
  op.eltwise = alg;
  op.alpha = alpha;
  op.beta = beta;
  op.scale = scale;
  return op;
}

PostOp SumPostOp(float scale, OperandRef operand) {
  PostOp op;
  op.kind = PostOpKind::kSum;
  op.scale = scale;
  op.operand = operand;
  return op;
}

PostOp BinaryPostOp(BinaryAlg alg, OperandShape shape, OperandRef operand) {
  PostOp op;
  op.kind = PostOpKind::kBinary;
  op.binary = alg;
  op.shape = shape;
  op.operand = operand;
  return op;
}

std::string ToString(const PostOp& op) {
  const std::string scale = op.scale == 1.f ? "" : Number("scale", op.scale);
  switch (op.kind) {
    case PostOpKind::kEltwise: {
      const EltwiseWords& words = WordsOf(op.eltwise);
      return StrCat("eltwise(", words.name, Parameter("alpha", words.alpha, op.alpha),
                    Parameter("beta", words.beta, op.beta), scale, ")");
    }
    case PostOpKind::kSum: {
      const std::string text = Operand(op.operand) + scale;
      return "sum(" + text.substr(text[0] == ',') + ")";
    }
    case PostOpKind::kBinary:
      return StrCat("binary(", NameOf(op.binary), ",", NameOf(op.shape), ",", Operand(op.operand),
                    ")");
  }
  return "";
}

std::string PostOpChain::Complaint(const PostOp& op) const {
  if (len() == kMaxEntries) {
    return StrCat("a chain has at most ", kMaxEntries, " entries; split it over two ops");
  }
  if (!std::isfinite(op.alpha) || !std::isfinite(op.beta) || !std::isfinite(op.scale)) {
    return "alpha, beta and scale must be finite";
  }
  if (op.kind == PostOpKind::kBinary && op.operand.input == OperandRef::kDst) {
    return "binary needs the index of its operand in args";
  }
  return "";
}

std::string PostOpChain::Append(const PostOp& op) {
  const std::string complaint = Complaint(op);
  if (complaint.empty()) {
    entries_.push_back(op);
    return "";
  }
  return StrCat("entry ", len(), " \"", bd::ToString(op), "\": ", complaint);
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
        (op.shape == OperandShape::kScalar || !BinaryPreservesZero(op.binary))) {
      return false;
    }
  }
  return true;
}

bool PostOpChain::HasSum() const { return std::any_of(entries_.begin(), entries_.end(), IsSum); }

bool PostOpChain::ReadsSamples() const {
  return std::any_of(entries_.begin(), entries_.end(), [](const PostOp& op) {
    return op.kind == PostOpKind::kBinary && op.shape == OperandShape::kSampleChannel;
  });
}

bool PostOpChain::ReadsDst() const {
  return std::any_of(entries_.begin(), entries_.end(), [](const PostOp& op) {
    return op.kind != PostOpKind::kEltwise && op.operand.input == OperandRef::kDst;
  });
}

std::vector<int> PostOpChain::ReusableInputs() const {
  std::vector<int> inputs;
  for (const PostOp& sum : entries_) {
    if (!IsSum(sum) || sum.operand.input == OperandRef::kDst || sum.operand.offset != 0) continue;
    const auto reads_it = [&](const PostOp& op) {
      return op.kind != PostOpKind::kEltwise && op.operand.input == sum.operand.input;
    };
    if (std::count_if(entries_.begin(), entries_.end(), reads_it) == 1) {
      inputs.push_back(sum.operand.input);
    }
  }
  return inputs;
}

BoundPostOps::BoundPostOps(const PostOpChain& chain, Isa isa, int64_t channels,
                           const float* const* args, const float* dst, ElementType sum)
    : program_{steps_, chain.len(), chain.PreservesZero(), &PostOpKernelsFor(isa)} {
  const std::vector<PostOp>& entries = chain.entries();
  const int64_t padded_channels = (channels + kBlock - 1) / kBlock * kBlock;
  if (padded_channels != channels) {
    padded_.resize(std::count_if(entries.begin(), entries.end(), IsChannelOperand) *
                   padded_channels);
  }
  float* free = padded_.data();
  for (int i = 0; i < chain.len(); ++i) {
    const PostOp& op = entries[i];
    const ElementType type = op.kind == PostOpKind::kSum ? sum : ElementType();
    if (op.kind == PostOpKind::kSum) sum = {};
    const float* operand =
        op.kind == PostOpKind::kEltwise ? nullptr : Resolve(op.operand, args, dst);
    if (IsChannelOperand(op) && padded_channels != channels) {
      std::copy(operand, operand + channels, free);
      operand = free;
      free += padded_channels;
    }
    steps_[i] = {op.kind, op.eltwise, op.binary, op.shape, op.alpha,
                 op.beta, op.scale,   operand,   type};
  }
}

}  // namespace bd
