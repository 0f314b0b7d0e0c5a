#include "cc/tensorflow/attrs/movement/reorder_attrs.h"
#include "cc/tensorflow/attrs/shape_fns.h"
#include "tensorflow/core/framework/op.h"

using tensorflow::shape_inference::InferenceContext;

REGISTER_OP("BlockdnnReorder")
    .Input("src: T")
    .Input("into: into_types")
    .Output("dst: dst_type")
    .Attr("T: {float, bfloat16, half, int32, int8, uint8} = DT_FLOAT")
    .Attr("dst_type: {float, bfloat16, half, int32, int8, uint8} = DT_FLOAT")
    .Attr("src_layout: string")
    .Attr("dst_layout: string")
    .Attr("channels: int >= -1 = -1")
    .Attr("dims: list(int) = []")
    .Attr("src_strides: list(int) = []")
    .Attr("src_offset: int = 0")
    .Attr("dst_strides: list(int) = []")
    .Attr("dst_offset: int = 0")
    .Attr("scales: list(float) = []")
    .Attr("scale_shape: list(int) = []")
    .Attr("beta: float = 0.0")
    .Attr("into_types: list({float, bfloat16, half, int32, int8, uint8}) >= 0 = []")
    .SetShapeFn([](InferenceContext* c) {
      bd::ReorderAttrs attrs;
      TF_RETURN_IF_ERROR(attrs.Read(c));
      bd::Dims dims;
      bd::PartialTensorShape dst;
      TF_RETURN_IF_ERROR(bd::ReorderShape(
          attrs, bd::InputShape(c, 0),
          attrs.has_into ? bd::InputShape(c, 1) : bd::PartialTensorShape(), &dims, &dst));
      return bd::SetOutputShape(c, dst, attrs.keeps_batch());
    })
    .Doc(R"doc(
Copies a tensor from one memory layout, and data type, to another.

dst = scale * src + beta * into, in float32, then rounded to nearest, ties to even,
and saturated. The tail of a blocked layout, what its last blocks hold beyond the
tensor, is written as zero, and dropped on the way back.

src: in src_layout, [N, ceil(channels / 16), H, W, 16] for nChw16c; with strides or
  an offset, any tensor that has enough elements.
into: what dst starts as; at most one.
dst: the same values in dst_layout; with strides or an offset flat, or of the shape
  of into.
src_layout: a name of bd.TensorDesc.layouts(), or empty: strides alone.
dst_layout: the same.
channels: the logical number of channels C, if dims are not given.
dims: the logical dimensions, -1 where the shape of src tells.
src_strides: elements between neighbours, one for each of dims. Empty: those of
  src_layout.
src_offset: elements before the first one.
scales: in row-major order; empty: 1.
scale_shape: their shape: dims[d] for the dimensions d whose indices have scales of
  their own, 1 for the others. Empty: one scale.
into_types: that of into, the same as dst_type.
)doc");
