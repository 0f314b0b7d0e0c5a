#include "cc/tensorflow/attrs/shape_fns.h"
#include "tensorflow/core/framework/op.h"

REGISTER_OP("BlockdnnInnerProduct")
    .Input("src: T")
    .Input("weights: T")
    .Input("args: num_args * T")
    .Output("dst: T")
    .Attr("T: {float} = DT_FLOAT")
    .Attr("num_args: int >= 0")
    .Attr("weights_shape: list(int)")
    .Attr("weights_offset: int >= 0 = 0")
    .Attr("post_ops: string = ''")
    .Attr("constant_weights: bool = false")
    .Attr("algorithm: {'auto', 'direct'} = 'auto'")
    .Attr(bd::kScratchpadModeAttr)
    .SetShapeFn(bd::PackedWeightsOpShape<bd::InnerProductAttrs, bd::InnerProductShape>)
    .Doc(R"doc(
src [.., ic] times weights [ic, oc], then a chain of post-ops, applied before the
store.

src: rows of ic floats.
weights: elements [weights_offset, weights_offset + ic * oc) of this tensor,
  whatever its shape, are the matrix, row by row.
args: the operands that post_ops name #0, #1, ...
dst: [.., oc].
weights_shape: [ic, oc].
post_ops: entries joined by ';', for example "binary(add,channel,#0);eltwise(relu)".
constant_weights: the weights never change, so their packed form may be kept for
  good.
algorithm: how a few rows are multiplied. direct reads the weights as they are; auto
  packs constant ones where that is faster.
scratchpad_mode: user takes temporary memory from TensorFlow's allocator for each
  execution; library keeps buffers with the kernel. Safe on many threads, both.
)doc");
