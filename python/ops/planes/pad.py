"""Zeros around the planes of a blocked activation."""

from dataclasses import dataclass

from ..record import Record, function_of


@dataclass(frozen=True, kw_only=True)
class Pad(Record, title="padding"):
    """
    Attributes:
        paddings: top, bottom, left, right; negative numbers cut off.
    """

    paddings: tuple[int, int, int, int]

    def _kind(self) -> str:
        return f"{list(self.paddings)}"


@function_of(Pad)
def pad(src, paddings, *, channels: int, name=None):
    """Adds rows and columns of zeros to each plane, or cuts some off.

    Args:
      src: float32 activation in blocks, [N, ceil(C / 16), H, W, 16].
      paddings: [[top, bottom], [left, right]] pixels; negative numbers cut off.
      channels: C.
      name: of the op.

    Returns:
      float32 [N, ceil(C / 16), H + top + bottom, W + left + right, 16].

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
    return Pad.run(src, channels=channels, paddings=paddings, name=name)
