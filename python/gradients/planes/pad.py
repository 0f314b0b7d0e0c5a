"""Gradient of padding planes: what is added is cut off, and what is cut off is zero."""

import tensorflow as tf

from ...ops.planes.pad import pad


@tf.RegisterGradient("BlockdnnPad")
def _gradient(op, dy):
    top, bottom, left, right = (-side for side in op.get_attr("paddings"))
    return pad(dy, [[top, bottom], [left, right]], channels=op.get_attr("channels"))
