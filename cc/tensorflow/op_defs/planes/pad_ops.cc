#include "cc/tensorflow/attrs/planes/pad_attrs.h"
#include "tensorflow/core/framework/op.h"

using tensorflow::shape_inference::InferenceContext;

REGISTER_OP("BlockdnnPad")
    .Input("src: T")
    .Output("dst: T")
    .Attr("T: {float} = DT_FLOAT")
    .Attr("channels: int >= 1")
    .Attr("paddings: list(int)")
    .SetShapeFn([](InferenceContext* c) {
      bd::PadAttrs attrs;
      TF_RETURN_IF_ERROR(attrs.Read(c));
      bd::Plane plane, dst_plane;
      TF_RETURN_IF_ERROR(bd::PadPlanes(attrs, bd::InputShape(c, 0), &plane, &dst_plane));
      bd::PartialTensorShape dst;
      TF_RETURN_IF_ERROR(bd::MakeShape(bd::Layout::nChw16c, attrs.channels, dst_plane, &dst));
      return bd::SetOutputShape(c, dst);
    })
    .Doc(R"doc(
Zeros around the planes of an nChw16c activation, or rows and columns cut off.

src: [N, ceil(channels / 16), H, W, 16].
dst: [N, ceil(channels / 16), H + top + bottom, W + left + right, 16].
paddings: [top, bottom, left, right]; negative numbers cut off.
)doc");
