"""Gradient of layer normalisation."""

import tensorflow as tf

from ..blocked import BLOCKS_AXIS, channel_row, elements, is_blocked
from ..node import text, vjp


@tf.RegisterGradient("BlockdnnLayerNorm")
def _gradient(op, dy):
    channels, layout = op.get_attr("channels"), text(op, "layout")
    offsets, epsilon = op.get_attr("offsets"), op.get_attr("epsilon")

    def formula(src, gamma, beta):
        gamma, beta = (
            elements(tensor, offset, [channels])
            for tensor, offset in zip((gamma, beta), offsets, strict=True)
        )
        axes, lanes = [-1], 1.0
        if is_blocked(layout):
            rank = src.shape.rank
            axes, lanes = [BLOCKS_AXIS, -1], channel_row(tf.ones(channels), channels, rank)
            gamma, beta = (channel_row(values, channels, rank) for values in (gamma, beta))
        mean = tf.reduce_sum(src * lanes, axes, keepdims=True) / channels
        x = (src - mean) * lanes
        variance = tf.reduce_sum(tf.square(x), axes, keepdims=True) / channels
        return x * tf.math.rsqrt(variance + epsilon) * gamma + beta

    return vjp(formula, op.inputs, dy)
