"""Gradient of layer normalisation: our kernel of blocked tensors, TensorFlow ops of plain ones."""

import tensorflow as tf

from ...native import library
from ..blocked import BLOCKS_AXIS, channel_row, elements, is_blocked
from ..node import text, vjp


@tf.RegisterGradient("BlockdnnLayerNorm")
def _gradient(op, dy):
    channels, epsilon = op.get_attr("channels"), op.get_attr("epsilon")
    layout, offsets = text(op, "layout"), op.get_attr("offsets")
    src, gamma, beta = op.inputs
    whole = gamma.shape == beta.shape == [channels] and offsets == [0, 0]
    if is_blocked(layout) and whole:
        return library().blockdnn_layer_norm_grad(
            dy, src, gamma, channels=channels, epsilon=epsilon
        )

    def formula(src, gamma, beta):
        gamma, beta = (
            elements(tensor, offset, [channels])
            for tensor, offset in zip((gamma, beta), offsets, strict=True)
        )
        return _normalised(src, gamma, beta, layout, channels, epsilon)

    return vjp(formula, op.inputs, dy)


@tf.RegisterGradient("BlockdnnLayerNormGrad")
def _second_gradient(op, *grads):
    channels, epsilon = op.get_attr("channels"), op.get_attr("epsilon")

    def formula(ddst, src, gamma):
        def forward(src, gamma, beta):
            return _normalised(src, gamma, beta, "nChw16c", channels, epsilon)

        return vjp(forward, [src, gamma, tf.zeros_like(gamma)], ddst)

    return vjp(formula, op.inputs, list(grads))


def _normalised(src, gamma, beta, layout: str, channels: int, epsilon: float):
    """The definition; gamma and beta are [channels]."""
    axes, lanes = [-1], 1.0
    if is_blocked(layout):
        rank = src.shape.rank
        axes, lanes = [BLOCKS_AXIS, -1], channel_row(tf.ones(channels), channels, rank)
        gamma, beta = (channel_row(values, channels, rank) for values in (gamma, beta))
    mean = tf.reduce_sum(src * lanes, axes, keepdims=True) / channels
    x = (src - mean) * lanes
    variance = tf.reduce_sum(tf.square(x), axes, keepdims=True) / channels
    return x * tf.math.rsqrt(variance + epsilon) * gamma + beta
