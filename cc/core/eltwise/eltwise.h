// dst = chain(src), element by element, over a tensor in blocks of 16 or with channels last.
//
//   EltwiseDesc -> MakeEltwisePlan -> EltwisePlan (immutable) -> RunEltwise
//
// A binary operation of two tensors is a chain of one entry whose operand has
// shape tensor. The channel tail of a blocked dst is written as zeros, whatever
// src holds there.
#ifndef CC_CORE_ELTWISE_ELTWISE_H_
#define CC_CORE_ELTWISE_ELTWISE_H_

#include <cstdint>
#include <string>

#include "cc/base/cpu/isa.h"
#include "cc/base/threads/thread_pool.h"
#include "cc/core/eltwise/eltwise_kernel.h"
#include "cc/core/post_ops/post_ops.h"
#include "cc/layout/tensor_view.h"

namespace bd {

// src and dst are float32 of equal layout and dims. Blocked ones may be some channels of wider
// tensors; operands of the chain are dense.
struct EltwiseDesc {
  TensorView src, dst;
  PostOpChain post_ops;
};

// Immutable once made; safe to run on many threads.
struct EltwisePlan {
  EltwiseDesc desc;
  int64_t segment_floats = 0;  // one (n, block) plane, or one sample of NHWC
  int64_t total_floats = 0;
  int64_t task_floats = 0;  // a multiple of 16
  int64_t tasks = 0;
  int64_t src_gap = 0, dst_gap = 0;  // floats of other channels between two images
  const EltwiseKernels* kernels = nullptr;
};

// Returns an empty string, or one line that names what is wrong.
std::string MakeEltwisePlan(const EltwiseDesc& desc, Isa isa, EltwisePlan* plan);

// args[k] is the first element of the op's input args[k] that the chain calls
// #k; a sum without operand reads dst. src and dst are the addresses of the first channels. Where
// both are dense, dst may be src or any operand that is read element by element.
void RunEltwise(const EltwisePlan& plan, const float* src, const float* const* args, float* dst,
                ThreadPool& pool);

// The same result, element by element in double.
void EltwiseRef(const EltwiseDesc& desc, const float* src, const float* const* args, float* dst);

}  // namespace bd

#endif  // CC_CORE_ELTWISE_ELTWISE_H_
