// dst = chain(src), element by element, over a tensor in blocks of 16 or with channels last.
//
//   EltwiseDesc -> MakeEltwisePlan -> EltwisePlan (immutable) -> RunEltwise
//
// A binary operation of two tensors is a chain of one entry whose operand has
// shape tensor. The channel tail of a blocked dst is written as zeros, whatever
// src holds there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cc/base/cpu/isa.h"
#include "cc/base/quantization.h"
#include "cc/base/threads/thread_pool.h"
#include "cc/core/eltwise/eltwise_kernel.h"
#include "cc/core/post_ops/post_ops.h"
#include "cc/layout/tensor_view.h"

namespace bd {

// src and dst are of equal layout and dims, and of any type. Blocked ones may be some channels of
// wider tensors; operands of the chain are dense.
struct EltwiseDesc {
  TensorView src, dst;
  PostOpChain post_ops;
  Quantization src_quantization, dst_quantization;
  // Of the op's input args[k]; float32 beyond the last of them. Only tensor operands, from their
  // first element on, may be of another type.
  std::vector<ElementType> arg_types;

  ElementType src_type() const { return {src.dtype(), src_quantization}; }
  ElementType dst_type() const { return {dst.dtype(), dst_quantization}; }
  ElementType arg_type(int k) const {
    return k < static_cast<int>(arg_types.size()) ? arg_types[k] : ElementType();
  }
};

// Immutable once made; safe to run on many threads.
struct EltwisePlan {
  EltwiseDesc desc;
  int64_t segment_floats = 0;  // one (n, block) plane, or one sample of NHWC
  int64_t total_floats = 0;
  int64_t tasks = 0;
  int64_t src_gap = 0, dst_gap = 0;  // floats of other channels between two images
  const EltwiseKernels* kernels = nullptr;
  Isa isa = Isa::kGeneric;
  bool floats = true;  // src, dst and all operands are float32
  bool bytes = false;  // src and dst are blocks of uint8
  bool bf16 = false;   // or of bfloat16
};

// Returns an empty string, or one line that names what is wrong.
std::string MakeEltwisePlan(const EltwiseDesc& desc, Isa isa, EltwisePlan* plan);

// args[k] is the first element of the op's input args[k] that the chain calls
// #k, of its own type; a sum without operand reads dst. src and dst are the addresses of the first
// channels. Where both are dense and elements are of one size, dst may be src or any operand that
// is read element by element.
void RunEltwise(const EltwisePlan& plan, const void* src, const float* const* args, void* dst,
                ThreadPool& pool);

}  // namespace bd
