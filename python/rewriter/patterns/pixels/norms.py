"""Normalisation over the channels, in the spellings of Keras and TensorFlow."""

from functools import partial

import numpy as np

from ....ops.records import LayerNorm
from ...rules import Match, Number, PerChannel, Rule


def layer_norm(tf, x, epsilon, gamma=1.0, beta=0.0):
    """Layer normalisation over the channels."""
    mean = tf.Mean(x, tf.axes(x, -1), keep_dims=True)
    variance = tf.Mean(tf.SquaredDifference(x, mean), tf.axes(x, -1), keep_dims=True)
    scaled = tf.Rsqrt(variance + epsilon) * gamma
    return x * scaled + tf.either(beta - mean * scaled, -mean * scaled + beta)


def rms_norm(tf, x, epsilon, gamma=1.0):
    """Normalisation by the root of the mean square over the channels: RMSNorm."""
    square = tf.either(tf.Square(x), x * x, tf.Pow(x, 2.0))
    shifted = tf.Mean(square, tf.axes(x, -1), keep_dims=True) + epsilon
    root = tf.Sqrt(shifted)
    inverse = tf.either(tf.Rsqrt(shifted), tf.Reciprocal(root), 1.0 / root, tf.Pow(shifted, -0.5))
    return tf.either(x * (inverse * gamma), tf.either(x * inverse, x / root) * gamma)


def _norm(match: Match, centered: bool = True) -> LayerNorm:
    return LayerNorm(
        origin=match.root.name,
        channels=len(match["gamma"]),
        epsilon=match["epsilon"],
        gamma=match["gamma"],
        beta=match["beta"] if centered else np.zeros(len(match["gamma"]), np.float32),
        centered=centered,
        of_pixels=len(match.shape("x")) == 4,
    )


_SCALED = {"epsilon": Number(low=0.0), "gamma": PerChannel()}
LAYER_NORM = Rule(layer_norm, _norm, beta=PerChannel(), **_SCALED)
RMS_NORM = Rule(rms_norm, partial(_norm, centered=False), **_SCALED)
