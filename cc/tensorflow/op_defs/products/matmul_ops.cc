#include "cc/tensorflow/attrs/products/matmul_attrs.h"
#include "tensorflow/core/framework/op.h"

using tensorflow::shape_inference::InferenceContext;

REGISTER_OP("BlockdnnPackedMatmul")
    .Input("a: T")
    .Input("b: T")
    .Input("args: num_args * T")
    .Input("c: num_adds * T")
    .Output("dst: T")
    .Attr("T: {float} = DT_FLOAT")
    .Attr("num_args: int >= 0")
    .Attr("num_adds: int >= 0")
    .Attr("transpose_a: bool = false")
    .Attr("transpose_b: bool = false")
    .Attr("constant_b: bool = false")
    .Attr("algorithm: {'auto', 'direct'} = 'auto'")
    .Attr("add_scale: float = 1.0")
    .Attr("post_ops: string = ''")
    .SetShapeFn([](InferenceContext* c) {
      bd::MatmulAttrs attrs;
      TF_RETURN_IF_ERROR(attrs.Read(c));
      bd::MatmulSizes sizes;
      bd::PartialTensorShape dst;
      TF_RETURN_IF_ERROR(bd::MatmulShape(attrs, bd::InputShapes(c, 0), &sizes, &dst));
      return bd::SetOutputShape(c, dst);
    })
    .Doc(R"doc(
a b + add_scale c, then a chain of post-ops; b is packed once and kept.

a: [.., k], or [k, m] with transpose_a.
b: [k, n], or [n, k] with transpose_b.
args: the operands that post_ops name #0, #1, ...
c: [.., n], or none.
dst: [.., n].
constant_b: b never changes, so that its packed form is kept from the first call on;
  otherwise once the same b has come twice.
algorithm: direct sums products as they are; auto multiplies by a constant b in pairs on
  a CPU that gains from it.
)doc");
