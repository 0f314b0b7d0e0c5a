"""Gradients of the ops that change height and width.

Windows have a kernel of ours. Where TensorFlow computes, [N, blocks, H, W, 16] is
[N * blocks, H, W, 16] to it: images of 16 channels, which it takes without a reorder.
"""

import math

import tensorflow as tf

from ..layout import BLOCK
from ..native import library
from ..ops.arguments import padding_attrs
from ..ops.movement.reorder import reorder
from ..ops.planes.pad import pad
from ..ops.planes.pool import pool
from .blocked import part_of, place
from .node import gradient_of, vjp

_RESIZES = {
    "nearest": tf.raw_ops.ResizeNearestNeighbor,
    "bilinear": tf.raw_ops.ResizeBilinear,
}


@gradient_of("Pad")
def _pad(called, dy):
    """What is added is cut off, and what is cut off is zero."""
    top, bottom, left, right = (-side for side in called.paddings)
    return pad(dy, [[top, bottom], [left, right]], channels=called.channels)


@gradient_of("Resize")
def _resize(called, dy):
    """TensorFlow's own on the blocks as images of 16 channels. Of a nearest pixel that is repeated
    it is the sum over the repetitions: our average pooling."""
    channels, scales, coordinates = called.channels, called.scales, called.coordinates
    src_part, dst_part = called.src_part, called.dst_part
    repeats = called.kind == "nearest" and scales and coordinates != "align_corners"
    if repeats and not (src_part or dst_part or called.into):
        means = pool(dy, "avg", scales, channels=channels, strides=scales, padding="VALID")
        return means * math.prod(scales)

    def formula(src, *into):
        x = images(part_of(src, src_part, channels))
        y = _RESIZES[called.kind](
            images=x,
            size=called.size or tf.shape(x)[1:3] * tf.constant(scales),
            half_pixel_centers=coordinates == "half_pixel",
            align_corners=coordinates == "align_corners",
        )
        return place(blocks(y, part_of(src, src_part, channels)), dst_part, channels, into)

    return vjp(formula, called.inputs, dy)


@gradient_of("Pool")
def _pool(called, dy):
    channels, src_part, dst_part = called.channels, called.src_part, called.dst_part
    window = _window(called)
    if not (src_part or called.into or dst_part):
        # The mean needs no result: with dy in place of it nobody keeps it.
        dst = dy if called.kind == "avg" else called.dst
        kind, ksize, strides, padding = window
        return library().blockdnn_pool_grad(
            dy,
            called.src,
            dst,
            kind=kind,
            channels=channels,
            ksize=ksize,
            strides=strides,
            **padding_attrs(padding),
        )

    def formula(src, *into):
        return place(pooled(part_of(src, src_part, channels), *window), dst_part, channels, into)

    return vjp(formula, called.inputs, dy)


@gradient_of("PoolGrad")
def _pool_grad(called, ddsrc):
    """Linear in ddst: what `pooled` does to a change of src, where the maxima stay."""
    ddst, src, _ = called.inputs
    window = _window(called)

    def formula(ddst):
        return vjp(lambda x: pooled(x, *window), [src], ddst)[0]

    return [vjp(formula, [ddst], ddsrc)[0], None, None]


def _window(called) -> tuple:
    return called.kind, called.ksize, called.strides, called.padding_argument


def images(x):
    """The blocks of a blocked activation as images of 16 channels."""
    shape = tf.shape(x) if None in x.shape[2:4] else x.shape
    return tf.reshape(x, [-1, shape[2], shape[3], BLOCK])


def blocks(x, like):
    """The inverse of `images`, with as many blocks a sample as `like` has."""
    shape = tf.shape(x) if None in x.shape[1:3] else x.shape
    return tf.reshape(x, [-1, like.shape[1], shape[1], shape[2], BLOCK])


def pooled(src, kind, ksize, strides, padding):
    """Pooling of a blocked activation in TensorFlow ops."""
    x = images(src)
    pool = tf.nn.max_pool2d if kind == "max" else tf.nn.avg_pool2d
    if isinstance(padding, str):
        return blocks(pool(x, ksize, strides, padding), src)
    around = [[0, 0], *padding, [0, 0]]
    if kind == "max":
        return blocks(
            pool(tf.pad(x, around, constant_values=x.dtype.min), ksize, strides, "VALID"), src
        )
    # The mean of a window is that with zeros around, over the share of it that is no padding.
    inside = tf.pad(tf.ones_like(x[:1]), around)
    mean = pool(tf.pad(x, around), ksize, strides, "VALID")
    return blocks(mean / pool(inside, ksize, strides, "VALID"), src)


@gradient_of("GlobalPool")
def _global_pool(called, dy):
    src, layout, channels = called.src, called.dst_layout, called.channels
    if called.kind == "avg":
        pixels = tf.shape(src)[2] * tf.shape(src)[3]
        if layout != "nChw16c":
            dy = reorder(tf.reshape(dy, [-1, 1, 1, channels]), "nhwc", "nChw16c")
        return tf.broadcast_to(dy / tf.cast(pixels, dy.dtype), tf.shape(src))

    def formula(x):
        x = tf.reduce_max(x, axis=[2, 3], keepdims=True)
        if layout == "nChw16c":
            return x
        plain = reorder(x, "nChw16c", "nhwc", channels=channels)
        return plain if layout == "nhwc" else tf.reshape(plain, [-1, channels])

    return vjp(formula, [src], dy)
