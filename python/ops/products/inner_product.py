"""Inner product with post-ops."""

from dataclasses import field

import numpy as np
import tensorflow as tf

from ...graph import FLOAT32
from ...layout import NHWC
from ..arguments import filter_shape
from ..bind_post_ops import Destination, bind_post_ops
from ..call import OpCall, function_of
from ..record import Record

_ROWS = {
    "quantized": "quantize_rows",
    "balanced": "balance_rows",
    "rounded": "round_rows",
}


class InnerProduct(Record, title="inner product"):
    """src [.., in_channels] @ weights, then the steps; inputs[1] is the weights themselves.

    They stay where they are, and follow their variable, unless they are computed from it. They may
    be of any type in `dtypes("weights")`; scales of int8 are the array `weight_scales`, or an input
    of that role. Those of uint8 are numbers of 4 bits, as `inner_product` takes them.

    Attributes:
        weights: [in_channels, channels], where they are no tensor that is there anyway.
        weight_scales: of weights that are an array, of int8 [channels], of uint8 [2, groups,
            channels]; with balance_rows [channels + in_channels].
        group: rows of weights of uint8 that share a step.
        dequantized: whether float32 weights were computed from integers that are stored.
        weight_steps: [channels], where float32 weights are whole multiples of such steps.
        constant_weights: whether they never change.
        stored_dtype: of the weights where they are a tensor.
        quantize_rows: whether rows become integers, too, before they meet weights of int8.
        balance_rows: whether columns of rows are multiplied by factors before that.
        round_rows: whether rows may become bfloat16 before they meet weights of bfloat16.
        algorithm: "auto" packs the weights where few rows gain by it, "direct" does not.
    """

    src_layout = dst_layout = NHWC
    operands = ("src", "weights")
    takes_steps = True
    in_channels: int
    constant_weights: bool = True
    weights: np.ndarray | None = field(default=None, repr=False)
    weight_scales: np.ndarray | None = field(default=None, repr=False)
    group: int = 0
    dequantized: bool = False
    weight_steps: np.ndarray | None = field(default=None, repr=False)
    stored_dtype: int = FLOAT32
    quantize_rows: bool = False
    balance_rows: bool = False
    round_rows: bool = False
    algorithm: str = "auto"

    @property
    def src_channels(self) -> int:
        return self.in_channels

    @property
    def weights_shape(self) -> tuple[int, int]:
        return self.in_channels, self.channels

    @property
    def weights_type(self) -> int:
        if self.weights is None:
            return self.stored_dtype
        return tf.as_dtype(self.weights.dtype).as_datatype_enum

    def dtype_of(self, role: str) -> int:
        return self.weights_type if role == "weights" else super().dtype_of(role)

    def _kind(self) -> str:
        kind = f"{self.in_channels}->{self.channels}"
        if self.weights_type != FLOAT32:
            name = tf.as_dtype(self.weights_type).name
            kind += f" int4 in groups of {self.group}" if self.group else f" {name}"
        rows = [f"rows {how}" for how in _ROWS if getattr(self, _ROWS[how])]
        return ", ".join([kind, *rows])

    def write(self, inputs, bundle) -> tuple[dict, list]:
        offsets, scales = {}, [inputs["weight_scales"]] if "weight_scales" in inputs else []
        if self.weights is not None:
            if self.weights_type == FLOAT32:
                weights, offset = bundle.tensor, bundle.add_array(self.weights)
            else:
                weights, offset = bundle.add_typed(self.weights, self.weights)
            offsets["weights_offset"], inputs = offset, inputs | {"weights": weights}
        if self.weight_scales is not None:
            offsets["scales_offset"] = bundle.add_array(self.weight_scales)
            scales = [bundle.tensor]
        attributes, tensors = super().write(inputs, bundle)
        return attributes | offsets, [*tensors, scales]


@function_of(InnerProduct, "scales_offset quantize_rows balance_rows group")
def inner_product(
    src,
    weights,
    *,
    post_ops="",
    args=(),
    dst=None,
    weights_shape=None,
    weights_offset: int = 0,
    weight_scales=None,
    dtype=None,
):
    """Computes src @ weights and then a chain of post-ops before the result is stored.

    Args:
      src: float32, [.., ic]; any rank of 1 and more. Or bfloat16, with weights of bfloat16.
      weights: float32, [ic, oc]. Or bfloat16 or int8: weights stay in that type in memory, and
        arithmetic with a src of float32 is that of float32. bfloat16 is multiplied by bfloat16. Or
        uint8 [ceil(ic / 2), oc], two numbers of 4 bits a byte: its lower bits are an even row, its
        upper bits the next one; give weights_shape and group.
      args: float32 operands that the chain calls #0, #1, ... A channel operand has
        oc elements, a sample_channel operand is [N, oc] with N the result's first
        dimension; a tensor operand and the operand of sum have the result's shape.
        Operands that `PostOps` holds are not listed here.
      how: words in any order. "constant": weights never change, so that the op may keep their
        packed form from the first call on; those that meet only zeros of src are not read. "direct"
        reads the weights of up to 14 rows (6 without AVX-512) as they are; the default, "auto",
        does so, too, but without AVX-512 packs constant weights for more than 3 rows. Beyond 14 (6)
        rows both pack. "rounded", with weights of bfloat16: rows of a src of float32 may become
        bfloat16, too. They do where there are at least six and the CPU has AVX512-BF16; others gain
        nothing by it.
      weight_scales: with weights of int8: float32, [oc]; column j of the weights stands for
        weight_scales[j] times its integers. A tensor of any shape, of which the op reads
        [scales_offset, scales_offset + oc). With weights of uint8: [2, ceil(ic / group), oc];
        number q of row i, column j stands for weight_scales[0, i // group, j] q +
        weight_scales[1, i // group, j].
      group: with weights of uint8: how many rows share a step and an offset, a multiple of 8, or
        all.
      scales_offset: elements.
      quantize_rows: with weights of int8: as in `packed_matmul`.
      balance_rows: with quantize_rows: whether weight_scales go on with ic factors, by which the
        numbers of each row are multiplied before they are quantized, so that the weights are
        divided by these.
      dtype: of the result: float32, or bfloat16 where src is or its rows are rounded or quantized;
        None: float32.

    Returns:
      [.., oc] of dtype.

    Source: inner product and post-ops (eltwise, sum, binary) of oneDNN.

    Example:
      >>> rows = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
      >>> weights = np.array([[1.0, 0.0, -1.0], [0.0, 1.0, -1.0]], np.float32)
      >>> bd.ops.inner_product(rows, weights, post_ops="eltwise(relu)").numpy()
      array([[1., 2., 0.],
             [3., 4., 0.]], dtype=float32)
    """
    weights_shape = filter_shape("weights", weights, weights_shape, "ic", "oc")
    src, weights = tf.convert_to_tensor(src), tf.convert_to_tensor(weights)
    if weights_shape[-1:] == [0]:  # nothing to compute
        return tf.zeros(tf.concat([tf.shape(src)[:-1], [0]], 0))
    if weights_shape[:1] == [0]:  # a sum of nothing is a product by zero
        src = tf.pad(src, [[0, 0]] * (src.shape.rank - 1) + [[0, 1]])
        weights_shape = [1, *weights_shape[1:]]
        weights, weights_offset = tf.zeros(weights_shape, weights.dtype), 0
    to = Destination(weights_shape[-1], rank=src.shape.rank, like=src)
    post_ops, args = bind_post_ops(post_ops, args, dst, to)
    scales = [] if weight_scales is None else [weight_scales]
    attributes = {
        "weights_shape": weights_shape,
        "weights_offset": weights_offset,
        "post_ops": post_ops,
        "dst_type": tf.float32 if dtype is None else tf.dtypes.as_dtype(dtype),
    }
    return OpCall((src, weights, args, scales), attributes)
