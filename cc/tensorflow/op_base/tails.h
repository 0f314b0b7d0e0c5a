// TF_BLOCKDNN_CHECK_TAILS=1: every op verifies that the tails of its blocked inputs
// and outputs are zero (of bytes the zero point), and fails with the name of the op that broke one.
// It lives in PoolOpKernel (op_utils.h), so no op can go without.
#pragma once

#include <climits>
#include <cstdint>
#include <vector>

#include "cc/base/quantization.h"
#include "cc/core/post_ops/post_ops.h"
#include "cc/layout/tensor_desc.h"
#include "cc/tensorflow/attrs/attrs.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace bd {

// Read from the environment once; unset, empty and 0 mean no.
bool TailChecksEnabled();

// The tensors in blocked layouts among an op's inputs and outputs. All others are
// plain and have no tails.
class BlockedTensors {
 public:
  struct Entry {
    int index;
    Layout layout;
    Dims sizes;
    TensorDesc memory;  // instead of layout and sizes, if it has dimensions
    int32_t tail = 0;   // what stands for zero
  };

  // Input or output `index`, if `layout` is a blocked one. `sizes` are those of the
  // dimensions in blocks, which a shape does not tell, in logical order: {channels}
  // of an activation, {o, i} of weights OIhw16i16o.
  BlockedTensors& Input(int index, Layout layout, const Dims& sizes) {
    return Add(&inputs_, {index, layout, sizes, {}});
  }
  BlockedTensors& Output(int index, Layout layout, const Dims& sizes) {
    return Add(&outputs_, {index, layout, sizes, {}});
  }
  // The same for part of the channels of an nChw16c tensor; the op has `channels` of them.
  BlockedTensors& Input(int index, const ChannelPart& part, Layout layout, int64_t channels,
                        const Quantization& q = {}) {
    return Add(&inputs_, index, part, layout, channels, q);
  }
  BlockedTensors& Output(int index, const ChannelPart& part, Layout layout, int64_t channels,
                         const Quantization& q = {}) {
    return Add(&outputs_, index, part, layout, channels, q);
  }
  // The same for one whose memory is known already, whatever its shape.
  BlockedTensors& Input(int index, const TensorDesc& memory, const Quantization& q = {}) {
    return Add(&inputs_, {index, {}, {}, memory, q.zero_point});
  }
  BlockedTensors& Output(int index, const TensorDesc& memory, const Quantization& q = {}) {
    return Add(&outputs_, {index, {}, {}, memory, q.zero_point});
  }
  // The operands that the chain applies to a result of that layout; operand #0 is input `first`,
  // and those from #num_floats on are quantized by `q`.
  BlockedTensors& Operands(const PostOpChain& chain, int first, Layout layout, int64_t channels,
                           int num_floats = INT_MAX, const Quantization& q = {});

  const std::vector<Entry>& inputs() const { return inputs_; }
  const std::vector<Entry>& outputs() const { return outputs_; }

 private:
  BlockedTensors& Add(std::vector<Entry>* list, const Entry& entry);
  BlockedTensors& Add(std::vector<Entry>* list, int index, const ChannelPart& part, Layout layout,
                      int64_t channels, const Quantization& q);

  std::vector<Entry> inputs_, outputs_;
};

// InvalidArgument for the first input of the running op with a broken tail. Inputs
// whose shape contradicts `blocked` are left to the op's own checks.
absl::Status CheckInputTails(const BlockedTensors& blocked, tensorflow::OpKernelContext* ctx);

// Internal for the first output with a broken tail; to be called after the op.
absl::Status CheckOutputTails(const BlockedTensors& blocked, tensorflow::OpKernelContext* ctx);

}  // namespace bd
