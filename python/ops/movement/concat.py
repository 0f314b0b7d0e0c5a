"""Concatenation along the channels."""

from ...native import library
from ..arguments import dst_part_args


def concat(values, *, channels, dst_part=None, into=None, name=None):
    """Joins blocked activations of any number of channels along their channels.

    Args:
      values: float32 tensors [N, ceil(channels[i] / 16), H, W, 16].
      channels: logical channels, one integer for each value.
      dst_part: (first channel, C of the whole) if the result is a part of the channels of a
        wider tensor. The wider tensor is returned, and the op writes only the part. The rest
        is what `into` holds, and undefined without it.
      into: a tensor of the shape of the wider one. The result takes its memory if nobody
        else holds it, and otherwise a copy.
      name: of the op.

    Returns:
      [N, ceil(sum(channels) / 16), H, W, 16]. Channels follow each other without gaps, and
      lanes beyond the last one are zero.

    Raises:
      ValueError: an argument is malformed; or batch, height or width differ while a graph
        is built.
      InvalidArgumentError: batch, height or width differ when the op runs.

    Source: tf.concat along the channels.

    Example:
      >>> a, b = np.zeros((1, 1, 8, 8, 16), np.float32), np.zeros((1, 2, 8, 8, 16), np.float32)
      >>> bd.ops.concat([a, b], channels=[8, 32]).shape  # 40 channels are 3 blocks
      TensorShape([1, 3, 8, 8, 16])
    """
    return library().blockdnn_concat(
        list(values), channels=list(channels), **dst_part_args(dst_part, into), name=name
    )
