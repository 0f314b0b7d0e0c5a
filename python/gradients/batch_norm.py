"""Gradient of batch normalisation in training.

With M values a channel and r = 1 / sqrt(variance + epsilon):

    dbeta = sum dy,  dgamma = r sum dy (x - mean)
    dx = gamma r (dy - dbeta / M) + (x - mean) slope + dmean / M
    slope = (2 dvariance - gamma r^2 dgamma) / M

A ReLU behind it is differentiated in the same two passes: where it clamps, x tells.
"""

import math

import tensorflow as tf

from ..layout import NCHW16C
from ..native import library
from ..ops.call import Called
from .blocked import channel_row, channel_sums
from .node import gradient_of, vjp

# TensorFlow's gradient of a clamp -> the clamp.
_CLAMPS = {"ReluGrad": "relu", "Relu6Grad": "relu6"}


@gradient_of("BatchNorm")
def _gradient(called, dy, dmean, dvariance):
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
def _second_gradient(called, *grads):
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
def _fold_gradient(called, dfolded, dshift):
    channels, inner, epsilon = called.channels, called.inner, called.epsilon

    def formula(weights, bias, gamma, beta, mean, variance):
        factor = gamma * tf.math.rsqrt(variance + epsilon)
        scaled = tf.reshape(weights, [-1, channels, inner]) * factor[:, None]
        return [tf.reshape(scaled, tf.shape(weights)), factor * (bias - mean) + beta]

    return vjp(formula, called.inputs, [dfolded, dshift])
