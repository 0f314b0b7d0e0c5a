"""Normalisations as Keras has them."""

import keras
import tensorflow as tf

from ..native import library
from ..ops.pixels.layer_norm import layer_norm
from ..ops.post_ops import PostOps
from .activation import apply_chain
from .blocked_layer import BlockedLayer, images, on_images, restored
from .fusing import normalised

_registered = keras.saving.register_keras_serializable(package="tf_blockdnn")


@_registered
class BatchNormalization(BlockedLayer, keras.layers.BatchNormalization):
    """keras.layers.BatchNormalization; blocked along the channels, one pass over the activation
    in inference and two in training, forward and backward.

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
            y, mean, variance = library().blockdnn_batch_norm(
                images(inputs, 2), gamma, beta, channels=channels, epsilon=self.epsilon
            )
            y = restored(y, rank - 2, inputs)
            for moving, new in ((self.moving_mean, mean), (self.moving_variance, variance)):
                moving.assign(moving * self.momentum + new * (1.0 - self.momentum))
            return self.finish(y, channels)
        return self.finish(self._by_moments(inputs, gamma, beta, training), channels)

    def _by_moments(self, inputs, gamma, beta, training):
        """Inference: in the weights of the op before, otherwise as post-ops."""
        mean = tf.convert_to_tensor(self.moving_mean)
        variance = tf.convert_to_tensor(self.moving_variance)
        if not training:
            rows = dict(
                gamma=tf.ones_like(mean) if gamma is None else gamma,
                beta=tf.zeros_like(mean) if beta is None else beta,
                mean=mean,
                variance=variance,
            )
            y = normalised(inputs, rows, self.epsilon)
            if y is not None:
                return y
        factor = tf.math.rsqrt(variance + self.epsilon)
        factor = factor if gamma is None else factor * gamma
        shift = -mean * factor
        shift = shift if beta is None else shift + beta
        chain = PostOps().binary("mul", factor, "channel").binary("add", shift, "channel")
        return apply_chain(inputs, chain, self.blocked_channels, training)


@_registered
class LayerNormalization(BlockedLayer, keras.layers.LayerNormalization):
    """keras.layers.LayerNormalization; blocked along the channels, on our kernel.

    Over other axes, and with rms_scaling, Keras computes on plain tensors.

    Example:
      >>> bd.layers.LayerNormalization()(tf.ones((1, 8, 8, 20))).shape
      TensorShape([1, 8, 8, 20])
    """

    def call(self, inputs):
        self.refuse_xla()
        channels = self.blocked_channels
        if not self.reads_blocked or not is_over_channels(self, len(inputs.shape) - 1):
            return self.by_tensorflow(super().call, inputs)
        gamma = tf.ones([channels]) if self.gamma is None else tf.convert_to_tensor(self.gamma)
        beta = tf.zeros([channels]) if self.beta is None else tf.convert_to_tensor(self.beta)
        options = dict(epsilon=self.epsilon, channels=channels)
        return self.finish(
            on_images(lambda x: layer_norm(x, gamma, beta, **options), inputs), channels
        )


def is_over_channels(layer, rank: int) -> bool:
    """Whether a LayerNormalization of plain tensors of `rank` is what our kernel computes."""
    axes = layer.axis if isinstance(layer.axis, (list, tuple)) else [layer.axis]
    return list(axes) in ([-1], [rank - 1]) and not getattr(layer, "rms_scaling", False)
