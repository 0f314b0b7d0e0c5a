"""Concatenation along the channels."""

from ..native import library
from .arguments import dst_part_args


def concat(values, *, channels, dst_part=None, into=None, name=None):
    """Joins blocked activations along their channels, whatever their numbers.

    Args:
      values: float32 tensors [N, ceil(channels[i] / 16), H, W, 16].
      channels: logical channels, one integer for each value.
      dst_part: the same of the result: all of the wider tensor is returned, and only the
        part written. The rest is undefined, or what `into` holds.
      into: a tensor of the shape of the wider one; the result takes its memory where
        nobody else holds it, otherwise a copy.
      name: of the op.

    Returns:
      [N, ceil(sum(channels) / 16), H, W, 16]; channels follow each other without
      gaps, lanes beyond the last one are zero.

    Raises:
      ValueError: an argument is malformed or, while a graph is built, batch,
        height or width differ.
      InvalidArgumentError: they differ when it runs.

    Source: tf.concat along the channels.

    Example:
      >>> a, b = np.zeros((1, 1, 8, 8, 16), np.float32), np.zeros((1, 2, 8, 8, 16), np.float32)
      >>> bd.ops.concat([a, b], channels=[8, 32]).shape  # 40 channels are 3 blocks
      TensorShape([1, 3, 8, 8, 16])
    """
    return library().blockdnn_concat(
        list(values), channels=list(channels), **dst_part_args(dst_part, into), name=name
    )
