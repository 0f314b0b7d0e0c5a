"""Zeros around the planes of a blocked activation."""

import tensorflow as tf

from ..arguments import types_of
from ..call import OpCall, function_of
from ..record import Record


class Pad(Record, title="padding"):
    """
    Attributes:
        paddings: top, bottom, left, right; negative numbers cut off.
    """

    keeps = True
    paddings: tuple[int, int, int, int]

    def _kind(self) -> str:
        return f"{list(self.paddings)}"


@function_of(Pad, "channels")
def pad(src, paddings, *, src_quantization=None):
    """Adds rows and columns of zeros to each plane, or cuts some off.

    Args:
      src: float32, bfloat16 or uint8 activation in blocks, [N, ceil(C / 16), H, W, 16].
      paddings: [[top, bottom], [left, right]] pixels; negative numbers cut off.
      src_quantization: (scale, zero_point) of a uint8 src: what is added is the zero point.

    Returns:
      [N, ceil(C / 16), H + top + bottom, W + left + right, 16], of the type of src.

    Raises:
      ValueError: paddings cut off more than there is, while a graph is built.
      InvalidArgumentError: the same, when it runs.

    Source: tf.pad; keras.layers.ZeroPadding2D and Cropping2D.

    Example:
      >>> x = np.ones((1, 1, 2, 2, 16), np.float32)
      >>> bd.ops.pad(x, [[0, 1], [1, -1]], channels=16).numpy()[0, 0, :, :, 0]
      array([[0., 1.],
             [0., 1.],
             [0., 0.]], dtype=float32)
    """
    src = tf.convert_to_tensor(src)
    return OpCall((src,), types_of(src, None, src_quantization, None))
