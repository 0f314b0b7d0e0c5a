"""Concatenation along the channels, also of some channels of each tensor."""

from ...native import library
from ..arguments import dst_part_args


def concat(values, *, channels, src_parts=None, dst_part=None, into=None, name=None):
    """Joins blocked activations of any number of channels, or some channels of each.

    One value of which some channels are taken is what tf.split and slices make of it.

    Args:
      values: float32 tensors [N, ceil(channels[i] / 16), H, W, 16].
      channels: logical channels that are joined, one integer for each value.
      src_parts: (first channel, C of the value) for each value, if not all channels of all
        values are joined. A part may begin and end at any channel.
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

    Source: tf.concat and tf.split along the channels.

    Example:
      >>> a, b = np.zeros((1, 1, 8, 8, 16), np.float32), np.zeros((1, 2, 8, 8, 16), np.float32)
      >>> bd.ops.concat([a, b], channels=[8, 32]).shape  # 40 channels are 3 blocks
      TensorShape([1, 3, 8, 8, 16])
      >>> bd.ops.concat([b], channels=[20], src_parts=[(10, 32)]).shape  # b[.., 10:30]
      TensorShape([1, 2, 8, 8, 16])
    """
    return library().blockdnn_concat(
        list(values),
        channels=list(channels),
        src_parts=[number for part in src_parts or () for number in part],
        **dst_part_args(dst_part, into),
        name=name,
    )
