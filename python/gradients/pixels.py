"""Gradients of the ops that change values and keep every shape.

Of batch normalisation in training, with M values a channel and r = 1 / sqrt(variance + epsilon):

    dbeta = sum dy,  dgamma = r sum dy (x - mean)
    dx = gamma r (dy - dbeta / M) + (x - mean) slope + dmean / M
    slope = (2 dvariance - gamma r^2 dgamma) / M

A ReLU after it is differentiated in the same two passes: where it clamps, x tells.
"""

import math

import tensorflow as tf

from ..layout import NCHW16C
from ..native import library
from ..ops.call import Called
from ..ops.movement.reorder import reorder
from ..ops.planes.pool import global_pool
from .blocked import BLOCKS_AXIS, channel_row, channel_sums, elements, is_blocked
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


# TensorFlow's gradient of a clamp -> the clamp.
_CLAMPS = {"ReluGrad": "relu", "Relu6Grad": "relu6"}


@gradient_of("BatchNorm")
def _batch_norm(called, dy, dmean, dvariance):
    src, gamma, beta = called.inputs
    dst, mean, variance = called.op.outputs
    dy, clamp = _before_clamp(dy, dst)
    return library().blockdnn_batch_norm_grad(
        dy,
        src,
        gamma,
        beta,
        mean,
        variance,
        dmean,
        dvariance,
        channels=called.channels,
        epsilon=called.epsilon,
        clamp=clamp,
    )


def _before_clamp(dy, dst) -> tuple:
    """(the gradient of a clamp's result, the clamp) where that alone makes dy, the gradient of dst;
    otherwise (dy, "")."""
    if not tf.is_symbolic_tensor(dy) or dy.op.type not in _CLAMPS:
        return dy, ""
    gradient, result = dy.op.inputs
    clamp, producer = _CLAMPS[dy.op.type], result.op
    if producer.type != "BlockdnnEltwise" or Called(producer).post_ops != f"eltwise({clamp})":
        return dy, ""
    return (gradient, clamp) if producer.inputs[0].ref() == dst.ref() else (dy, "")


@gradient_of("BatchNormGrad")
def _batch_norm_grad(called, *grads):
    channels, epsilon = called.channels, called.epsilon
    top = {"": None, "relu": math.inf, "relu6": 6.0}[called.clamp]

    def formula(dy, x, gamma, beta, mean, variance, dmean, dvariance):
        count = tf.cast(tf.size(x) // (x.shape[1] * x.shape[-1]), x.dtype)

        def row(values):
            return channel_row(values, channels, x.shape.rank)

        r = tf.math.rsqrt(variance + epsilon)
        centred = x - row(mean)
        if top is not None:
            y = centred * row(gamma * r) + row(beta)
            dy = tf.where((y > 0) & (y < top), dy, 0.0)
        dbeta = channel_sums(dy, channels, NCHW16C)
        dgamma = r * channel_sums(dy * centred, channels, NCHW16C)
        slope = (2.0 * dvariance - gamma * r * r * dgamma) / count
        offset = (dmean - gamma * r * dbeta) / count
        return [dy * row(gamma * r) + centred * row(slope) + row(offset), dgamma, dbeta]

    return vjp(formula, called.inputs, list(grads))


@gradient_of("FoldBatchNorm")
def _fold_batch_norm(called, dfolded, dshift):
    channels, inner, epsilon = called.channels, called.inner, called.epsilon

    def formula(weights, bias, gamma, beta, mean, variance):
        factor = gamma * tf.math.rsqrt(variance + epsilon)
        scaled = tf.reshape(weights, [-1, channels, inner]) * factor[:, None]
        return [tf.reshape(scaled, tf.shape(weights)), factor * (bias - mean) + beta]

    return vjp(formula, called.inputs, [dfolded, dshift])
