// The definition of post-ops, in double, for tests.
#ifndef CC_CORE_POST_OPS_POST_OPS_REF_H_
#define CC_CORE_POST_OPS_POST_OPS_REF_H_

#include <cstdint>

#include "cc/core/post_ops/post_ops.h"

namespace bd {

// f(x) of EltwiseAlg, without the scale.
double EltwiseValueRef(EltwiseAlg alg, double alpha, double beta, double x);

// One element through the chain. It is element `element` of dst (and of tensor
// and sum operands), in channel `channel`; `sample_channel` is its place in
// sample_channel operands: n * C + c, or n * Cb * 16 + c where dst is blocked.
// args and dst as in BoundPostOps, channel operands unpadded.
double ApplyPostOpsRef(const PostOpChain& chain, double x, const float* const* args,
                       const float* dst, int64_t element, int64_t channel, int64_t sample_channel);

}  // namespace bd

#endif  // CC_CORE_POST_OPS_POST_OPS_REF_H_
