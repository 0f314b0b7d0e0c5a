#include "cc/tensorflow/attrs/movement/shuffle_attrs.h"
#include "tensorflow/core/framework/op.h"

using tensorflow::shape_inference::InferenceContext;

REGISTER_OP("BlockdnnShuffle")
    .Input("src: T")
    .Output("dst: T")
    .Attr("T: {float, double, bfloat16, half, int8, uint8, int16, uint16, int32, int64, bool}")
    .Attr("axis: int")
    .Attr("group: int")
    .Attr("layout: string = ''")
    .Attr("channels: int = 0")
    .Attr("backward: bool = false")
    .SetShapeFn([](InferenceContext* c) {
      bd::ShuffleAttrs attrs;
      TF_RETURN_IF_ERROR(attrs.Read(c));
      bd::ShuffleView view;
      TF_RETURN_IF_ERROR(bd::ViewForShuffle(attrs, bd::InputShape(c, 0), &view));
      c->set_output(0, c->input(0));
      return absl::OkStatus();
    })
    .Doc(R"doc(
Shuffles the entries along one axis.

The C entries are seen as a (C / group) x group matrix, which is transposed:
dst[u + v * C / group] = src[u * group + v]. With backward, the other way round.

src: a plain tensor of rank 1 to 6, or a blocked activation in `layout`, whose lanes
  beyond the last channel are written as zero.
dst: of the shape, type and layout of src.
axis: counts the dimensions of a plain src, or those of the logical tensor
  [N, C, (D), (H), W] of a blocked one; negative from the end.
group: must divide the entries of the axis.
layout: nCw8c, nCw16c, nChw8c, nChw16c, nCdhw8c or nCdhw16c; or a plain layout, whose
  rank is then checked; or empty.
channels: the logical number of channels C of a blocked src.
)doc");
