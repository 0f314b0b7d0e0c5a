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
    if src_parts := op.get_attr("src_parts"):
        parts = zip(grads, channels, src_parts[::2], src_parts[1::2], strict=True)
        grads = [_as_part(grad, *part) for grad, *part in parts]
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


def _as_part(dy, channels: int, first: int, total: int):
    """dy as channels [first, first + channels) of `total`, of which the others are zero."""
    if channels == total:
        return dy
    plain = reorder(dy, NCHW16C, NHWC, channels=channels)
    around = [[0, 0], [0, 0], [0, 0], [first, total - first - channels]]
    return reorder(tf.pad(plain, around), NHWC, NCHW16C)
