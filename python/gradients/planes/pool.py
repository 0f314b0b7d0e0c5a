"""Gradients of pooling.

Windows have a kernel of ours. Where TensorFlow computes, [N, blocks, H, W, 16] is
[N * blocks, H, W, 16] to it: images of 16 channels, which it takes without a reorder.
"""

import tensorflow as tf

from ...layout import BLOCK
from ...native import library
from ...ops.arguments import padding_attrs
from ...ops.movement.reorder import reorder
from ..blocked import part_of, place
from ..node import padding_argument, split_inputs, text, vjp


@tf.RegisterGradient("BlockdnnPool")
def _gradient(op, dy):
    channels = op.get_attr("channels")
    src_part, dst_part = op.get_attr("src_part"), op.get_attr("dst_part")
    padding = padding_argument(op)
    kind, ksize, strides = text(op, "kind"), op.get_attr("ksize"), op.get_attr("strides")
    split_inputs(op, 1, op.get_attr("num_into"))
    if not (src_part or len(op.inputs) > 1 or dst_part):
        # The mean needs no result: with dy in its place nobody keeps it.
        dst = dy if kind == "avg" else op.outputs[0]
        return library().blockdnn_pool_grad(
            dy,
            op.inputs[0],
            dst,
            kind=kind,
            channels=channels,
            ksize=ksize,
            strides=strides,
            **padding_attrs(padding),
        )

    def formula(src, *into):
        x = part_of(src, src_part, channels)
        return place(pooled(x, kind, ksize, strides, padding), dst_part, channels, into)

    return vjp(formula, op.inputs, dy)


@tf.RegisterGradient("BlockdnnPoolGrad")
def _second_gradient(op, ddsrc):
    """Linear in ddst: what `pooled` does to a change of src, where the maxima stay."""
    kind, ksize, strides = text(op, "kind"), op.get_attr("ksize"), op.get_attr("strides")
    padding = padding_argument(op)

    def formula(ddst):
        return vjp(lambda x: pooled(x, kind, ksize, strides, padding), [op.inputs[1]], ddst)[0]

    return [vjp(formula, [op.inputs[0]], ddsrc)[0], None, None]


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


@tf.RegisterGradient("BlockdnnGlobalPool")
def _global_gradient(op, dy):
    src, layout, channels = op.inputs[0], text(op, "dst_layout"), op.get_attr("channels")
    if text(op, "kind") == "avg":
        pixels = tf.shape(src)[2] * tf.shape(src)[3]
        mean = _blocked_mean(dy, layout, channels) / tf.cast(pixels, dy.dtype)
        return tf.broadcast_to(mean, tf.shape(src))

    def formula(x):
        return plain_plane(tf.reduce_max(x, axis=[2, 3], keepdims=True), layout, channels)

    return vjp(formula, [src], dy)


def _blocked_mean(dy, layout: str, channels: int):
    """[N, C], [N, 1, 1, C] or [N, blocks, 1, 1, 16] as the last of these."""
    if layout == "nChw16c":
        return dy
    return reorder(tf.reshape(dy, [-1, 1, 1, channels]), "nhwc", "nChw16c")


def plain_plane(x, layout: str, channels: int):
    """[N, blocks, 1, 1, 16] in `layout`: "nc", "nhwc" or "nChw16c"."""
    if layout == "nChw16c":
        return x
    plain = reorder(x, "nChw16c", "nhwc", channels=channels)
    return plain if layout == "nhwc" else tf.reshape(plain, [-1, channels])
