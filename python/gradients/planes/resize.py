"""Gradient of resizing, through TensorFlow's own on the blocks as images of 16 channels.

Of a nearest pixel that is repeated it is the sum over the repetitions: our average pooling.
"""

import math

import tensorflow as tf

from ...ops.planes.pool import pool
from ..blocked import part_of, place
from ..node import split_inputs, text, vjp
from .pool import blocks, images

_OPS = {
    "nearest": tf.raw_ops.ResizeNearestNeighbor,
    "bilinear": tf.raw_ops.ResizeBilinear,
}


@tf.RegisterGradient("BlockdnnResize")
def _gradient(op, dy):
    channels = op.get_attr("channels")
    src_part, dst_part = op.get_attr("src_part"), op.get_attr("dst_part")
    size, scales = op.get_attr("size"), op.get_attr("scales")
    resize, coordinates = _OPS[text(op, "kind")], text(op, "coordinates")
    split_inputs(op, 1, op.get_attr("num_into"))
    repeats = text(op, "kind") == "nearest" and scales and coordinates != "align_corners"
    if repeats and not (src_part or dst_part or len(op.inputs) > 1):
        return pool(dy, "avg", scales, channels=channels, strides=scales) * math.prod(scales)

    def formula(src, *into):
        x = images(part_of(src, src_part, channels))
        y = resize(
            images=x,
            size=size or tf.shape(x)[1:3] * tf.constant(scales),
            half_pixel_centers=coordinates == "half_pixel",
            align_corners=coordinates == "align_corners",
        )
        return place(blocks(y, part_of(src, src_part, channels)), dst_part, channels, into)

    return vjp(formula, op.inputs, dy)
