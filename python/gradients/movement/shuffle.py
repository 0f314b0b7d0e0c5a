"""Gradient of the channel shuffle: the shuffle back."""

import tensorflow as tf

from ...ops.movement.shuffle import shuffle, shuffle_grad
from ..node import text


@tf.RegisterGradient("BlockdnnShuffle")
def _gradient(op, dy):
    back = shuffle if op.get_attr("backward") else shuffle_grad
    return back(
        dy,
        op.get_attr("axis"),
        op.get_attr("group"),
        layout=text(op, "layout") or None,
        channels=op.get_attr("channels") or None,
    )
