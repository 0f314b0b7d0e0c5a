"""Gradient of squeeze-and-excitation."""

import tensorflow as tf

from ...ops.movement.reorder import reorder
from ...ops.planes.pool import global_pool
from ..blocked import elements
from ..chain import Chain
from ..node import split_inputs, text, vjp


@tf.RegisterGradient("BlockdnnSqueezeExcite")
def _gradient(op, dy):
    channels, squeezed = op.get_attr("channels"), op.get_attr("squeezed")
    offsets, layout = op.get_attr("offsets"), text(op, "dst_layout")
    reduce_chain = Chain.of(text(op, "reduce_post_ops"), squeezed, "nhwc")
    expand_chain = Chain.of(text(op, "expand_post_ops"), channels, "nhwc")
    shapes = [channels, squeezed], [squeezed], [squeezed, channels], [channels]
    split_inputs(op, 5)

    def formula(src, *parameters):
        w1, b1, w2, b2 = (
            elements(p, offset, shape)
            for p, offset, shape in zip(parameters, offsets, shapes, strict=True)
        )
        mean = global_pool(src, "avg", channels=channels)
        inner = reduce_chain.apply(tf.matmul(mean, w1) + b1, ())
        scale = expand_chain.apply(tf.matmul(inner, w2) + b2, ())
        if layout == "nc":
            return scale
        scale = tf.reshape(scale, [-1, 1, 1, channels])
        if layout == "nhwc":
            return scale
        scale = reorder(scale, "nhwc", "nChw16c")
        return src * scale if op.get_attr("scale_src") else scale

    return vjp(formula, op.inputs, dy)
