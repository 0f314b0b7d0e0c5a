"""Gradient of concatenation along the channels."""

import tensorflow as tf

from ...layout import BLOCK, NCHW16C, NHWC, num_blocks
from ...ops.movement.reorder import reorder
from ..blocked import part_of, with_part
from ..node import split_inputs


@tf.RegisterGradient("BlockdnnConcat")
def _gradient(op, dy):
    channels, part = op.get_attr("channels"), op.get_attr("dst_part")
    values, into = split_inputs(op, op.get_attr("N"), op.get_attr("num_into"))
    total = sum(channels)
    inner = part_of(dy, part, total)
    grads = _split(inner, channels, total)
    if into:
        rest = with_part(dy, part, total, tf.zeros_like(inner)) if part else tf.zeros_like(dy)
        grads.append(rest)
    return grads


def _split(dy, channels: list[int], total: int) -> list:
    """dy cut into tensors of so many channels each."""
    if len(channels) == 1:
        return [dy]
    if all(c % BLOCK == 0 for c in channels[:-1]):
        return tf.split(dy, [num_blocks(c) for c in channels], axis=1)
    pieces = tf.split(reorder(dy, NCHW16C, NHWC, channels=total), channels, axis=3)
    return [reorder(piece, NHWC, NCHW16C) for piece in pieces]
