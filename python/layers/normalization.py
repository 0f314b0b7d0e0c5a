"""Normalisations as Keras has them."""

import keras
import tensorflow as tf

from ..native import library
from ..ops.pixels.layer_norm import layer_norm
from ..ops.post_ops import PostOps
from .activation import apply_chain
from .blocked_layer import BlockedLayer, from_images, images, on_images
from .classes import register
from .fusing import fold_moments


@register
class BatchNormalization(BlockedLayer, keras.layers.BatchNormalization):
    """keras.layers.BatchNormalization; blocked along the channels, one pass over the activation
    in inference and two in training, forward and backward.

    Masks, renormalisation and synchronized moments are computed by Keras on plain tensors.
    """

    def call(self, inputs, training=None, mask=None):
        self.refuse_xla()
        rank = len(inputs.shape) - 1
        along_channels = self.axis in (-1, rank - 1)
        special = mask is not None or getattr(self, "renorm", False) or self.synchronized
        if not self.reads_blocked or special or not along_channels:
            return self.by_keras(inputs, training=training, mask=mask)
        channels = self.blocked_channels
        gamma = tf.convert_to_tensor(self.gamma) if self.scale else None
        beta = tf.convert_to_tensor(self.beta) if self.center else None
        if training and self.trainable:
            gamma = tf.ones([channels]) if gamma is None else gamma
            beta = tf.zeros([channels]) if beta is None else beta
            y, mean, variance = library().blockdnn_batch_norm(
                images(inputs, 2), gamma, beta, channels=channels, epsilon=self.epsilon
            )
            y = from_images(y, rank - 2, inputs)
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
            y = fold_moments(inputs, rows, self.epsilon)
            if y is not None:
                return y
        factor = tf.math.rsqrt(variance + self.epsilon)
        factor = factor if gamma is None else factor * gamma
        shift = -mean * factor
        shift = shift if beta is None else shift + beta
        chain = PostOps().binary("mul", factor, "channel").binary("add", shift, "channel")
        return apply_chain(inputs, chain, self.blocked_channels, training)


class _OverChannels(BlockedLayer):
    def is_ours(self, inputs) -> bool:
        shape = inputs.shape
        if self.reads_blocked:
            return is_over_channels(self, shape.rank - 1)
        return (
            not isinstance(inputs, tf.SparseTensor)
            and inputs.dtype == tf.float32
            and self.variable_dtype == "float32"
            and shape.rank is not None
            and shape.rank > 1
            and bool(shape[-1])
            and is_over_channels(self, shape.rank)
        )

    def compute(self, inputs, training, centered: bool = True):
        """The result; without gamma it is 1, without beta 0."""
        channels = self.blocked_channels if self.reads_blocked else inputs.shape[-1]
        gamma, beta = (self.gamma, self.beta) if centered else (self.scale, None)
        gamma = tf.ones([channels]) if gamma is None else tf.convert_to_tensor(gamma)
        beta = tf.zeros([channels]) if beta is None else tf.convert_to_tensor(beta)
        options = dict(epsilon=self.epsilon, channels=channels, centered=centered)
        if self.reads_blocked:
            y = on_images(lambda x: layer_norm(x, gamma, beta, **options), inputs)
            return self.finish(y, channels)
        return self.finish(layer_norm(inputs, gamma, beta, layout="nhwc", **options))


@register
class LayerNormalization(_OverChannels, keras.layers.LayerNormalization):
    """keras.layers.LayerNormalization on our kernel, forward and backward; plain, or blocked along
    the channels.

    Over other axes than the last, with rms_scaling, and of other types than float32, Keras computes
    on plain tensors.
    """


@register
class RMSNormalization(_OverChannels, keras.layers.RMSNormalization):
    """keras.layers.RMSNormalization on our kernel, forward and backward; plain, or blocked along
    the channels.

    Over other axes than the last, and of other types than float32, Keras computes on plain tensors.

    Example:
      >>> bd.layers.RMSNormalization()(2 * tf.ones((1, 3, 20)))[0, 0, 0].numpy().round(3)
      np.float32(1.0)
    """

    def compute(self, inputs, training, centered: bool = False):
        return super().compute(inputs, training, centered)


def is_over_channels(layer, rank: int) -> bool:
    """Whether our kernel computes what this normalisation does of plain tensors of `rank`."""
    axes = layer.axis if isinstance(layer.axis, (list, tuple)) else [layer.axis]
    return list(axes) in ([-1], [rank - 1]) and not getattr(layer, "rms_scaling", False)
