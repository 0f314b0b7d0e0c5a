"""Convolution with post-ops."""

from dataclasses import field

import numpy as np
import tensorflow as tf

from ..arguments import filter_shape, padding_text, pair_text
from ..bind_post_ops import Destination, bind_post_ops, with_sum
from ..call import OpCall, function_of
from ..record import WithSum
from ..steps import write_chain
from .convolution import Convolution


class Conv(WithSum, Convolution, title="convolution"):
    """An ordinary convolution; weights are HWIO, [kh, kw, in_channels / groups, channels]. Its sum
    stands after the bias.

    Attributes:
        src_blocks: with src_part = (0, channels in all), the blocks of 16 channels of the wider
            tensor that are the source; empty: one after the other.
        pool: [height, width] of the max pooling after the steps, in windows that touch.
        is_dense: whether it is a Dense layer, which may be an inner product as well.
        weight_scales: with weights of int8, what they are scaled by, one number an output channel.
        weight_steps: where float32 weights are whole multiples of a step, that of each output
            channel.
    """

    groups: int = 1
    dilations: tuple[int, int] = (1, 1)
    padding: str = "VALID"
    explicit_paddings: tuple[int, int, int, int] = (0, 0, 0, 0)
    src_blocks: tuple[int, ...] = ()
    pool: tuple[int, ...] = ()
    is_dense: bool = False
    weight_scales: np.ndarray | None = field(default=None, repr=False)
    weight_steps: np.ndarray | None = field(default=None, repr=False)

    def details(self) -> str:
        blocks = f"; blocks {list(self.src_blocks)}" if self.src_blocks else ""
        pool = f"; max {list(self.pool)}" if self.pool else ""
        return super().details() + blocks + pool

    def _kind(self) -> str:
        kh, kw = self.weights.shape[:2]
        groups = f" groups {self.groups}" if self.groups > 1 else ""
        stride = f" stride {pair_text(self.strides)}" if self.strides != (1, 1) else ""
        dilation = f" dilation {pair_text(self.dilations)}" if self.dilations != (1, 1) else ""
        window = f"{kh}x{kw}{stride}{dilation} {padding_text(self)}"
        return f"{window} {self._channels()}{groups} {self._layouts()}"

    def sides(self, axis: int, size) -> tuple[int, int] | None:
        """The zeros before and after the source along an axis of that size; None: it is open."""
        if self.padding != "SAME":
            sides = self.explicit_paddings[2 * axis : 2 * axis + 2]
            return sides if self.padding == "EXPLICIT" else (0, 0)
        window, stride = (self.weights.shape[axis] - 1) * self.dilations[axis], self.strides[axis]
        if stride > 1 and not isinstance(size, int):
            return None
        total = window if stride == 1 else max(window - (size - 1) % stride, 0)
        return total // 2, total - total // 2

    @property
    def may_read_plain(self) -> bool:
        return self.groups == 1

    @property
    def depthwise(self) -> bool:
        return self.groups > 1 and self.groups == self.in_channels

    @property
    def weights_type(self) -> tf.DType:
        return tf.dtypes.as_dtype(self.weights.dtype) if self.is_typed else tf.float32

    @property
    def is_typed(self) -> bool:
        """Whether the weights are stored as they are, and not as float32."""
        return self.weights.dtype in (np.int8, tf.bfloat16.as_numpy_dtype)

    def write(self, inputs, bundle) -> tuple[dict, list]:
        attributes, weights, scales = self.attributes(), bundle.tensor, []
        if self.is_typed:
            weights, offset = bundle.add_typed(self.weights, self.weights)
        else:
            offset = self.add_weights(bundle)
        chain, args = write_chain(self.chain, inputs, bundle, self.sum_role)
        if self.weight_scales is not None:
            scales = [bundle.add_constant(f"{self.origin}/weight_scales", self.weight_scales)]
        sums = [inputs[self.sum_role]] if self.sum_role else []
        attributes |= {"post_ops": chain, "weights_offset": offset}
        return attributes, [inputs["src"], weights, args, sums, scales]


@function_of(
    Conv,
    "strides padding dilations pool weights_offset src_part src_blocks dst_part into "
    "src_quantization dst_quantization",
)
def conv(
    src,
    weights,
    *,
    groups: int = 1,
    post_ops="",
    args=(),
    dst=None,
    src_layout: str = "nChw16c",
    dst_layout: str = "nChw16c",
    channels: int | None = None,
    weights_shape=None,
    dtype=None,
    weight_scales=None,
    sum_quantization=None,
):
    """Computes a 2-D convolution and then a chain of post-ops before the result is stored.

    For a depthwise convolution, pass TensorFlow's filter [kh, kw, C, m], which has the same
    memory, with `groups=C, weights_shape=[kh, kw, 1, C * m]`.

    Args:
      src: float32, bfloat16 or uint8 activation, [N, H, W, C] ("nhwc") or
        [N, ceil(C / 16), H, W, 16] ("nChw16c").
      weights: float32 filter, HWIO: [kh, kw, C / groups, out channels]; bfloat16 or float32
        with a bfloat16 src, int8 with a uint8 one.
      groups: divides C and the output channels.
      pool: 2 or [2, 2] pixels: max pooling after post_ops, in windows that touch each
        other, with "VALID" padding, as Winograd stores it: the window is 3x3 or 5x5 at stride
        1, there is one group, tensors are nChw16c, and the chain is at most a channel added
        and a clamp (relu, relu6, ...). The result has the bits of `pool` after the
        convolution; everything else needs that op.
      channels: C; default weights_shape[2] * groups.
      how: words in any order, such as "direct constant". "direct" sums exactly the products of the
        definition; "winograd" saves multiplications of some windows, "paired" (FIP: nChw16c, one
        group, AVX-512) a third of all, and both round more (docs/algorithms.md); where one does not
        apply it is "direct". The default, "auto", takes what is faster.
      dtype: of the result, by default float32. From a bfloat16 or uint8 src it may also be
        bfloat16 or uint8.
      weight_scales: float32 [out channels], with int8 weights: what they are scaled by.
      sum_quantization: the quantization of `dst`, or of the operand of the sum, where that is
        uint8. It follows the bias, if there is one, and nothing else.
      dst_quantization: of a uint8 result: the chain's results are rounded to the nearest number,
        ties to even, and saturated.

    Returns:
      The activation in dst_layout, pooled if `pool` is given. Lanes of a blocked result
      beyond the output channels are zero.

    Source: convolution and post-ops (eltwise, sum, binary) of oneDNN.

    Example:
      >>> x = np.ones((1, 2, 8, 8, 16), np.float32)  # 32 channels of 8x8 pixels
      >>> filters = np.ones((3, 3, 32, 48), np.float32)
      >>> y = bd.ops.conv(x, filters, strides=2, padding="SAME", post_ops="eltwise(relu)")
      >>> y.shape
      TensorShape([1, 3, 4, 4, 16])
      >>> float(y[0, 0, 0, 0, 0])  # 3 * 3 pixels of 32 channels
      288.0
    """
    weights_shape = filter_shape("weights", weights, weights_shape, "kh", "kw", "ic / groups", "oc")
    src = tf.convert_to_tensor(src)
    if isinstance(weights, np.ndarray) and weights.dtype != np.float32:
        weights = tf.convert_to_tensor(weights)  # or they would become float32
    to = Destination(weights_shape[-1], layout=dst_layout, like=src, quantization=sum_quantization)
    post_ops, args, sums = with_sum(*bind_post_ops(post_ops, args, dst, to, low_precision=True))
    attributes = {
        "channels": weights_shape[2] * groups if channels is None else channels,
        "weights_shape": weights_shape,
        "post_ops": post_ops,
        "dst_type": tf.float32 if dtype is None else tf.dtypes.as_dtype(dtype),
    }
    scales = [] if weight_scales is None else [weight_scales]
    return OpCall((src, weights, args, sums, scales), attributes)
