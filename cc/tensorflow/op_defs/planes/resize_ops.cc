#include "cc/tensorflow/attrs/planes/resize_attrs.h"
#include "tensorflow/core/framework/op.h"

using tensorflow::shape_inference::InferenceContext;

REGISTER_OP("BlockdnnResize")
    .Input("src: T")
    .Input(bd::kIntoInput)
    .Output("dst: T")
    .Attr("T: {float} = DT_FLOAT")
    .Attr("kind: {'nearest', 'bilinear'}")
    .Attr("coordinates: {'half_pixel', 'asymmetric', 'align_corners'} = 'half_pixel'")
    .Attr("channels: int >= 1")
    .Attr("scales: list(int) = []")
    .Attr("size: list(int) = []")
    .Attr(bd::kSrcPartAttr)
    .Attr(bd::kDstPartAttr)
    .Attr(bd::kIntoAttr)
    .SetShapeFn([](InferenceContext* c) {
      bd::ResizeAttrs attrs;
      TF_RETURN_IF_ERROR(attrs.Read(c));
      bd::PartialTensorShape dst;
      TF_RETURN_IF_ERROR(bd::ResizeShape(attrs, bd::InputShapes(c, 0), &dst));
      return bd::SetOutputShape(c, dst);
    })
    .Doc(R"doc(
Resizes the planes of an nChw16c activation, as ResizeNearestNeighbor and ResizeBilinear do.

src: [N, ceil(channels / 16), H, W, 16].
into: nothing, or what dst starts as, [N, ceil(total / 16), out height, out width, 16]. dst
  takes its memory where nobody else holds it.
dst: the resized activation, nChw16c.
coordinates: half_pixel is half_pixel_centers, align_corners is align_corners, asymmetric neither.
scales: [height, width]: whole factors.
size: [height, width] of dst, instead of scales.
src_part: [first channel, channels of the tensor], if src is a part of a wider tensor.
dst_part: [first channel, channels of the tensor], if the result is a part of a wider
  tensor, which is then dst: what into holds, or undefined, outside of the part.
)doc");
