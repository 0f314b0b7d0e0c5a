// A chain bound to memory: what the kernels run.
#pragma once

#include <cstdint>
#include <vector>

#include "cc/base/cpu/isa.h"
#include "cc/core/post_ops/post_ops.h"

namespace bd {

// Made for one execution, on its stack; the operands must outlive it. Nothing
// is allocated unless channels % 16 != 0 and the chain has channel operands:
// those are then copied here, padded with zeros to whole blocks.
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
