"""Gradients of the ops that change values and keep every shape, but for batch normalisation's."""

import tensorflow as tf

from ..native import library
from ..ops.movement.reorder import reorder
from ..ops.planes.pool import global_pool
from .blocked import BLOCKS_AXIS, channel_row, elements, is_blocked
from .chain import Chain, through_chain
from .node import gradient_of, vjp


@gradient_of("Softmax")
def _softmax(called, dy):
    y = called.dst
    return (dy - tf.reduce_sum(dy * y, axis=-1, keepdims=True)) * y


@gradient_of("Eltwise")
def _eltwise(called, dy):
    """From the result where that tells all, otherwise through the chain in TensorFlow ops."""
    chain = Chain.of(called.post_ops, called.channels, called.layout)
    return through_chain(called, dy, chain, lambda src, *_: src, lambda dx: [dx])


@gradient_of("LayerNorm")
def _layer_norm(called, dy):
    channels, layout, offsets = called.channels, called.layout, called.offsets
    norm = dict(channels=channels, epsilon=called.epsilon, centered=called.centered)
    src, gamma, beta = called.inputs
    is_plain = gamma.shape == beta.shape == [channels] and offsets == [0, 0]
    if is_plain:
        return library().blockdnn_layer_norm_grad(dy, src, gamma, layout=layout, **norm)

    def formula(src, gamma, beta):
        gamma, beta = (
            elements(tensor, offset, [channels])
            for tensor, offset in zip((gamma, beta), offsets, strict=True)
        )
        return _normalised(src, gamma, beta, layout, **norm)

    return vjp(formula, called.inputs, dy)


@gradient_of("LayerNormGrad")
def _layer_norm_grad(called, *grads):
    layout = called.layout
    norm = dict(channels=called.channels, epsilon=called.epsilon, centered=called.centered)

    def formula(ddst, src, gamma):
        def forward(src, gamma, beta):
            return _normalised(src, gamma, beta, layout, **norm)

        return vjp(forward, [src, gamma, tf.zeros_like(gamma)], ddst)

    return vjp(formula, called.inputs, list(grads))


def _normalised(src, gamma, beta, layout: str, channels: int, epsilon: float, centered: bool):
    """The definition; gamma and beta are [channels]."""
    axes, lanes = [-1], 1.0
    if is_blocked(layout):
        rank = src.shape.rank
        axes, lanes = [BLOCKS_AXIS, -1], channel_row(tf.ones(channels), channels, rank)
        gamma, beta = (channel_row(values, channels, rank) for values in (gamma, beta))
    mean = tf.reduce_sum(src * lanes, axes, keepdims=True) / channels if centered else 0.0
    x = (src - mean) * lanes
    variance = tf.reduce_sum(tf.square(x), axes, keepdims=True) / channels
    return x * tf.math.rsqrt(variance + epsilon) * gamma + beta


@gradient_of("SqueezeExcite")
def _squeeze_excite(called, dy):
    channels, squeezed, layout = called.channels, called.squeezed, called.dst_layout
    reduce_chain = Chain.of(called.reduce_post_ops, squeezed, "nhwc")
    expand_chain = Chain.of(called.expand_post_ops, channels, "nhwc")
    shapes = [channels, squeezed], [squeezed], [squeezed, channels], [channels]

    def formula(src, *parameters):
        w1, b1, w2, b2 = (
            elements(p, offset, shape)
            for p, offset, shape in zip(parameters, called.offsets, shapes, strict=True)
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
        return src * scale if called.scale_src else scale

    return vjp(formula, called.inputs, dy)
