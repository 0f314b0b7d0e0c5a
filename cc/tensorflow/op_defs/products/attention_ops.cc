#include "cc/tensorflow/attrs/products/attention_attrs.h"
#include "tensorflow/core/framework/op.h"

using tensorflow::shape_inference::InferenceContext;

REGISTER_OP("BlockdnnAttention")
    .Input("q: T")
    .Input("k: T")
    .Input("v: T")
    .Input("biases: num_biases * T")
    .Input("masks: num_masks * bool")
    .Output("dst: T")
    .Attr("T: {float} = DT_FLOAT")
    .Attr("num_biases: int >= 0 = 0")
    .Attr("num_masks: int >= 0 = 0")
    .Attr("q_layout: {'BTNH', 'BNTH'} = 'BTNH'")
    .Attr("k_layout: {'BTNH', 'BNTH'} = 'BTNH'")
    .Attr("v_layout: {'BTNH', 'BNTH'} = 'BTNH'")
    .Attr("dst_layout: {'BTNH', 'BNTH'} = 'BTNH'")
    .Attr("scale: float = 1.0")
    .Attr("causal: bool = false")
    .Attr("masked_value: float = -inf")
    .Attr("zero_masked: bool = false")
    .Attr(bd::kScratchpadModeAttr)
    .SetShapeFn([](InferenceContext* c) {
      bd::AttentionAttrs attrs;
      TF_RETURN_IF_ERROR(attrs.Read(c));
      bd::AttentionSizes sizes;
      bd::PartialTensorShape dst;
      TF_RETURN_IF_ERROR(bd::AttentionShape(attrs, bd::InputShapes(c, 0), &sizes, &dst));
      return bd::SetOutputShape(c, dst);
    })
    .Doc(R"doc(
Scaled dot-product attention: softmax(scale q k^T + biases) v, for each head.

q: [B, T, N, H] or [B, N, T, H]; of rank 3, [B, T, H], as k and v then are: one head.
k: [B, S, Nkv, H] or [B, Nkv, S, H]; N is a multiple of Nkv.
v: [B, S, Nkv, Hv] or [B, Nkv, S, Hv].
biases: added to the scores one after the other; broadcastable to [B, N, T, S].
  The first dimension may also divide B: sequence b reads b modulo it.
  Of one dimension more than q and a first one of 1 it is [1, b, N, T, S].
masks: one or none, of a bias's shape; where it is false the score is masked_value.
zero_masked: there the weight is 0, in rows that are masked as a whole, too.
dst: [B, T, N, Hv] or [B, N, T, Hv].
causal: query t reads keys 0 to t only.
scratchpad_mode: user takes temporary memory from TensorFlow's allocator for each
  execution; library keeps buffers with the kernel. Safe on many threads, both.
)doc");
