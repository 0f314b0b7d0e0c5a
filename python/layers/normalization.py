"""Normalisations as Keras has them."""

import keras
import tensorflow as tf

from ..gradients.blocked import channel_row, channel_sums
from ..layout import NCHW16C
from ..ops.post_ops import PostOps
from .activation import apply_chain
from .blocked_layer import BlockedLayer

_registered = keras.saving.register_keras_serializable(package="tf_blockdnn")


@_registered
class BatchNormalization(BlockedLayer, keras.layers.BatchNormalization):
    """keras.layers.BatchNormalization; blocked along the channels, one pass over the activation
    in inference and two more for the moments in training.

    Masks, renormalisation and synchronized moments are computed by Keras on plain tensors.

    Example:
      >>> bd.layers.BatchNormalization()(tf.ones((1, 8, 8, 20))).shape
      TensorShape([1, 8, 8, 20])
    """

    def call(self, inputs, training=None, mask=None):
        self.refuse_xla()
        rank = len(inputs.shape) - 1
        along_channels = self.axis in (-1, rank - 1)
        special = mask is not None or self.renorm or self.synchronized
        if not self.reads_blocked or special or not along_channels:
            return self.by_tensorflow(super().call, inputs, training=training, mask=mask)
        channels = self.blocked_channels
        gamma = tf.convert_to_tensor(self.gamma) if self.scale else None
        beta = tf.convert_to_tensor(self.beta) if self.center else None
        if training and self.trainable:
            gamma = tf.ones([channels]) if gamma is None else gamma
            beta = tf.zeros([channels]) if beta is None else beta
            y, mean, variance = normalize(inputs, gamma, beta, channels, self.epsilon)
            for moving, new in ((self.moving_mean, mean), (self.moving_variance, variance)):
                moving.assign(moving * self.momentum + new * (1.0 - self.momentum))
            return self.finish(y, channels)
        factor = tf.math.rsqrt(tf.convert_to_tensor(self.moving_variance) + self.epsilon)
        factor = factor if gamma is None else factor * gamma
        shift = -tf.convert_to_tensor(self.moving_mean) * factor
        shift = shift if beta is None else shift + beta
        chain = PostOps().binary("mul", factor, "channel").binary("add", shift, "channel")
        return self.finish(apply_chain(inputs, chain, channels, training), channels)


def normalize(x, gamma, beta, channels: int, epsilon: float):
    """(y, mean, variance) of a blocked batch.

    With M values a channel, h = (x - mean) r and r = 1 / sqrt(variance + epsilon):

        y = gamma h + beta
        dbeta = sum dy,  dgamma = sum dy h
        dx = gamma r (dy - dbeta / M - h dgamma / M)

    which is a dy + b x + c with three numbers a channel: one pass.
    """

    @tf.custom_gradient
    def formula(x, gamma, beta):
        count = tf.cast(tf.size(x) // (x.shape[1] * x.shape[-1]), x.dtype)
        rank = x.shape.rank

        def row(values):
            return channel_row(values, channels, rank)

        mean = channel_sums(x, channels, NCHW16C) / count
        centred = x - row(mean)
        variance = channel_sums(tf.square(centred), channels, NCHW16C) / count
        factor = tf.math.rsqrt(variance + epsilon)
        # In the tail the row of means is zero, and so is what the rows below make of it.
        y = centred * row(factor * gamma) + row(beta)

        def gradient(dy, dmean, dvariance):
            # The two last results only feed moving averages, which have no gradient in Keras;
            # they get theirs all the same.
            dbeta = channel_sums(dy, channels, NCHW16C)
            products = channel_sums(dy * x, channels, NCHW16C)
            dgamma = (products - mean * dbeta) * factor
            scale = gamma * factor
            slope = -scale * factor * dgamma / count + 2.0 * dvariance / count
            offset = -scale * dbeta / count - slope * mean + dmean / count
            dx = dy * row(scale) + x * row(slope) + row(offset)
            return dx, dgamma, dbeta

        return (y, mean, variance), gradient

    return formula(x, gamma, beta)


@_registered
class LayerNormalization(BlockedLayer, keras.layers.LayerNormalization):
    """keras.layers.LayerNormalization; blocked, with reorders around TensorFlow's kernel.

    Example:
      >>> bd.layers.LayerNormalization()(tf.ones((1, 8, 8, 20))).shape
      TensorShape([1, 8, 8, 20])
    """

    def call(self, inputs):
        self.refuse_xla()
        return self.by_tensorflow(super().call, inputs)
