// What BlockdnnRnn and BlockdnnRnnGrad share.
#ifndef CC_TENSORFLOW_OP_KERNELS_PRODUCTS_RNN_OP_H_
#define CC_TENSORFLOW_OP_KERNELS_PRODUCTS_RNN_OP_H_

#include "cc/core/rnn/rnn.h"
#include "cc/tensorflow/attrs/products/rnn_attrs.h"
#include "cc/tensorflow/op_base/op_utils.h"

namespace bd {

RnnDesc DescribeRnn(const RnnAttrs& attrs, const RnnSizes& sizes);

// Memory for this execution, on huge pages where large.
Status TakeMemory(OpKernelContext* ctx, size_t bytes, Tensor* memory);

// A tensor of rows of `width` for every step and sample, as src lies.
template <typename T>
RnnSequence<T> SequenceOf(const RnnAttrs& attrs, const RnnSizes& sizes, T* data, int64_t width) {
  if (attrs.time_major) return {data, width, sizes.batch * width};
  return {data, sizes.steps * width, width};
}

// As dst lies.
template <typename T>
RnnSequence<T> DstSequenceOf(const RnnAttrs& attrs, const RnnSizes& sizes, T* data) {
  if (!attrs.return_sequences) return {data, sizes.units, 0};
  return SequenceOf(attrs, sizes, data, sizes.units);
}

}  // namespace bd

#endif  // CC_TENSORFLOW_OP_KERNELS_PRODUCTS_RNN_OP_H_
