"""Copies between memory layouts."""

import tensorflow as tf

from .._native import library
from .arguments import static_channels


def reorder(x, src: str, dst: str, *, channels: int | None = None, name=None):
    """Copies the activation `x` from layout `src` to layout `dst`.

    Args:
      x: float32; [N, H, W, C] if `src` is "nhwc", [N, ceil(C / 16), H, W, 16] if
        it is "nChw16c".
      src: "nhwc" or "nChw16c".
      dst: "nhwc" or "nChw16c".
      channels: C; may be left out when `src` is "nhwc" and C is static.
      name: of the op.

    Returns:
      The same values in layout `dst`. Lanes of a blocked result beyond C are zero.

    Raises:
      ValueError: channels is missing.
      InvalidArgumentError (ValueError while a graph is built): the shape of x
        does not fit src and channels, or a layout is unknown.

    Source: memory formats nhwc and nChw16c of oneDNN.
    """
    x = tf.convert_to_tensor(x)
    return library().blockdnn_reorder(
        x,
        src_layout=src,
        dst_layout=dst,
        channels=static_channels(x, src, channels),
        name=name,
    )
