#include "cc/core/post_ops/post_ops_bind.h"

#include <algorithm>

#include "cc/base/size.h"
#include "cc/core/post_ops/post_ops_kernel.h"

namespace bd {
namespace {

bool IsChannelOperand(const PostOp& op) {
  return op.kind == PostOpKind::kBinary && op.shape == OperandShape::kChannel;
}

}  // namespace

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
