// Post-ops: the ordered chain of element-wise work done on a primitive's
// result before it is stored. Words and semantics follow oneDNN's post-ops
// (eltwise, sum) with binary added; any chain in any order is legal.
//
//   eltwise(scale, alg, alpha, beta)   x = scale * f(x)
//   sum(scale)                         x = scale * dst + x
//   binary(alg)                        x = alg(x, operand)
//
// Text form, the op attribute `post_ops` (see PostOpChain::Parse):
//   binary(add,channel,#0@2304);sum(#1,scale=0.5);eltwise(leaky_relu,alpha=0.2)
#ifndef CC_CORE_POST_OPS_POST_OPS_H_
#define CC_CORE_POST_OPS_POST_OPS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cc/core/post_ops/post_op_step.h"

namespace bd {

// Where an operand lives: element `offset` of the op's input args[input].
struct OperandRef {
  int input = -1;
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

// An eltwise entry with the algorithm's default alpha and beta, scale 1.
PostOp EltwisePostOp(EltwiseAlg alg);

// Immutable once handed to a plan: plans copy it.
class PostOpChain {
 public:
  static constexpr int kMaxEntries = 32;

  // Parses the text form. On failure returns false and puts one line that
  // names the entry and the remedy into *error.
  static bool Parse(const std::string& text, PostOpChain* chain, std::string* error);
  std::string ToString() const;  // Parse(ToString()) gives an equal chain

  int len() const { return static_cast<int>(entries_.size()); }
  PostOpKind kind(int i) const { return entries_[i].kind; }
  const std::vector<PostOp>& entries() const { return entries_; }
  // False, and nothing is appended, where the chain is full.
  bool Append(const PostOp& op) {
    if (len() == kMaxEntries) return false;
    entries_.push_back(op);
    return true;
  }

  bool operator==(const PostOpChain& o) const { return ToString() == o.ToString(); }
  bool operator!=(const PostOpChain& o) const { return !(*this == o); }

  // True when every entry takes 0 to 0 in a tail, where channel and tensor
  // operands are zero (scalars are not): tails then stay zero untouched.
  bool PreservesZero() const;
  // The args input that the first `sum` accumulates into, or -1 where there is
  // none or its memory cannot serve as dst: the chain also reads it elsewhere
  // than at the element being written.
  int SumInput() const;

 private:
  std::vector<PostOp> entries_;
};

}  // namespace bd

#endif  // CC_CORE_POST_OPS_POST_OPS_H_
