// Post-ops: the ordered chain of element-wise work done on a primitive's
// result before it is stored. Words and semantics follow oneDNN's post-ops
// (eltwise, sum) with binary added; any chain in any order is legal.
//
//   eltwise(scale, alg, alpha, beta)   x = scale * f(x)
//   sum(scale)                         x = scale * dst + x
//   binary(alg)                        x = alg(x, operand)
//
//   PostOpChain chain;
//   chain.Append(EltwisePostOp(EltwiseAlg::kTanh));
//   chain.Append(SumPostOp(0.5f));
//   chain.ToString();                  "eltwise(tanh);sum(scale=0.5)"
//
// The text form is the op attribute `post_ops` (see PostOpChain::Parse):
//   binary(add,channel,#0@2304);sum(#1,scale=0.5);eltwise(leaky_relu,alpha=0.2)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cc/base/cpu/isa.h"
#include "cc/core/post_ops/post_op_step.h"

namespace bd {

// Where an operand lives: element `offset` of args[input]. A sum may also read
// kDst, what the memory of dst holds before.
struct OperandRef {
  static constexpr int kDst = -1;
  int input = kDst;
  int64_t offset = 0;
};

struct PostOp {
  PostOpKind kind = PostOpKind::kEltwise;
  EltwiseAlg eltwise = EltwiseAlg::kRelu;  // kind == kEltwise
  BinaryAlg binary = BinaryAlg::kAdd;      // kind == kBinary
  OperandShape shape = OperandShape::kTensor;
  float alpha = 0.f, beta = 0.f, scale = 1.f;
  OperandRef operand;  // kSum and kBinary
};

// With the algorithm's default alpha and beta, scale 1.
PostOp EltwisePostOp(EltwiseAlg alg);
PostOp EltwisePostOp(EltwiseAlg alg, float alpha, float beta, float scale = 1.f);
PostOp SumPostOp(float scale = 1.f, OperandRef operand = {});
PostOp BinaryPostOp(BinaryAlg alg, OperandShape shape, OperandRef operand);

std::string ToString(const PostOp& op);

// The operand's first element, args[k] being that of args input k.
inline const float* Resolve(const OperandRef& ref, const float* const* args, const float* dst) {
  return (ref.input == OperandRef::kDst ? dst : args[ref.input]) + ref.offset;
}

// Immutable once handed to a plan: plans copy it.
class PostOpChain {
 public:
  static constexpr int kMaxEntries = 32;

  // Parses the text form. On failure returns false and puts one line that
  // names the entry and the remedy into *error.
  static bool Parse(const std::string& text, PostOpChain* chain, std::string* error);
  std::string ToString() const;  // Parse(ToString()) gives an equal chain

  int len() const { return static_cast<int>(entries_.size()); }
  const std::vector<PostOp>& entries() const { return entries_; }
  // Returns an empty string; or one line that names the entry and the remedy,
  // and appends nothing.
  std::string Append(const PostOp& op);

  bool operator==(const PostOpChain& o) const { return ToString() == o.ToString(); }
  bool operator!=(const PostOpChain& o) const { return !(*this == o); }

  // True when every entry takes 0 to 0 in a tail, where channel and tensor
  // operands are zero (scalars are not): tails then stay zero untouched.
  bool PreservesZero() const;
  bool HasSum() const;
  bool ReadsSamples() const;  // some entry's operand is of shape [sample, channel]
  bool ReadsDst() const;      // some entry's operand is OperandRef::kDst
  // The args inputs whose memory may serve as dst: operands of `sum` that no
  // other entry reads.
  std::vector<int> ReusableInputs() const;

 private:
  // What is wrong with `op` as the next entry, or an empty string.
  std::string Complaint(const PostOp& op) const;

  std::vector<PostOp> entries_;
};

// A chain bound to memory: what the kernels run. Made for one execution, on its stack; the operands
// must outlive it. Nothing is allocated unless channels % 16 != 0 and the chain has channel
// operands: those are then copied here, padded with zeros to whole blocks.
class BoundPostOps {
 public:
  // To be run by the kernels of `isa`. args[k] is the first element of the op's input args[k]; dst
  // is what a sum without operand reads. The operand of the first sum is of type `sum`, which is
  // another one than float32 for blocked tensors only.
  BoundPostOps(const PostOpChain& chain, Isa isa, int64_t channels, const float* const* args,
               const float* dst, ElementType sum = {});
  BoundPostOps(const BoundPostOps&) = delete;
  BoundPostOps& operator=(const BoundPostOps&) = delete;

  const PostOpProgram* program() const { return &program_; }

 private:
  PostOpStep steps_[PostOpChain::kMaxEntries];
  PostOpProgram program_;
  std::vector<float> padded_;
};

}  // namespace bd
