"""Transposed convolution with post-ops."""

import numpy as np
import tensorflow as tf

from ..arguments import filter_shape, pair_text
from ..bind_post_ops import Destination, bind_post_ops
from ..call import OpCall, function_of
from .convolution import Convolution


class ConvTranspose(Convolution, title="transposed convolution"):
    """A transposed convolution; weights are [kh, kw, channels, in_channels].

    Attributes:
        crops: top, bottom, left and right pixels cut off; what comes after may be negative.
    """

    output_axis = 2
    crops: tuple[int, int, int, int] = (0, 0, 0, 0)

    def _kind(self) -> str:
        kh, kw = self.weights.shape[:2]
        window = f"{kh}x{kw} stride {pair_text(self.strides)} crops {list(self.crops)}"
        return f"{window} {self._channels()} {self._layouts()}"

    @property
    def taps(self) -> float:
        kh, kw, _, ic = self.weights.shape
        return kh * kw * ic / float(np.prod(self.strides))


@function_of(ConvTranspose, "strides weights_offset src_part dst_part into")
def conv_transpose(
    src,
    weights,
    *,
    crops=((0, 0), (0, 0)),
    post_ops="",
    args=(),
    dst=None,
    dst_layout: str = "nChw16c",
    channels: int | None = None,
    weights_shape=None,
):
    """Computes a 2-D transposed convolution of a blocked activation, then a chain of post-ops.

    Every pixel of src adds its products with the filter to kh x kw pixels of the result, strides
    apart. Along each axis the result has (size - 1) * stride + kernel pixels, less those that
    `crops` cut off. TensorFlow's padding "VALID" crops nothing; where the stride is larger than the
    kernel it appends stride - kernel pixels, a negative crop at the end. "SAME" crops kernel -
    stride pixels, the smaller half of them at the start.

    Args:
      src: float32 activation in blocks, [N, ceil(C / 16), H, W, 16].
      weights: float32 filter as tf.nn.conv2d_transpose has it: [kh, kw, out channels, C].
      strides: pixels, one integer or [height, width]; each at most 16.
      crops: [[top, bottom], [left, right]] pixels; bottom and right may be negative, which adds
        pixels that no source pixel reaches.
      dst_layout: "nChw16c", or "nhwc" if there are fewer than 16 output channels.
      channels: C; default weights_shape[3].

    Returns:
      The activation in dst_layout. Lanes of a blocked result beyond the output channels are zero.

    Source: tf.nn.conv2d_transpose; the deconvolution of oneDNN.

    Example:
      >>> x = np.ones((1, 2, 4, 4, 16), np.float32)  # 32 channels of 4x4 pixels
      >>> filters = np.ones((2, 2, 48, 32), np.float32)
      >>> y = bd.ops.conv_transpose(x, filters, strides=2, post_ops="eltwise(relu)")
      >>> y.shape
      TensorShape([1, 3, 8, 8, 16])
      >>> float(y[0, 0, 0, 0, 0])  # one tap of 32 channels
      32.0
    """
    weights_shape = filter_shape("weights", weights, weights_shape, "kh", "kw", "oc", "ic")
    src = tf.convert_to_tensor(src)
    oc = weights_shape[2] if len(weights_shape) == 4 else 1
    to = Destination(oc, layout=dst_layout, like=src)
    post_ops, args = bind_post_ops(post_ops, args, dst, to)
    attributes = {
        "channels": weights_shape[-1] if channels is None else channels,
        "weights_shape": weights_shape,
        "post_ops": post_ops,
    }
    return OpCall((src, weights, args), attributes)
