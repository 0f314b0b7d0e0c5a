"""Activations as layers."""

import math

import keras
import tensorflow as tf

from ..ops.pixels.eltwise import eltwise
from ..ops.post_ops import PostOps
from . import functions
from .blocked_layer import BlockedLayer, on_images
from .classes import register
from .fusing import extend


class ChainLayer(BlockedLayer):
    """A layer that is a chain of post-ops where it is blocked."""

    def chain(self) -> "PostOps | None":
        """The chain, or None where there is none for these arguments."""
        raise NotImplementedError

    def call(self, inputs, training=None):
        self.refuse_xla()
        chain = self.chain() if self.reads_blocked else None
        if chain is None:
            return self.by_tensorflow(super().call, inputs)
        y = apply_chain(inputs, chain, self.blocked_channels, training)
        return self.finish(y, self.blocked_channels)


def apply_chain(x, chain: PostOps, channels: int, training):
    """The chain of a blocked tensor of any rank; in inference in the op before it, if possible."""
    if not chain:
        return x
    y = None if training else extend(x, chain)
    if y is not None:
        return y
    return on_images(lambda x: eltwise(x, chain, channels=channels), x)


@register(example='"relu"')
class Activation(ChainLayer, keras.layers.Activation):
    """keras.layers.Activation; blocked, one pass of our element-wise kernel."""

    def chain(self):
        return functions.append(PostOps(), self.activation)


@register(example="6.0")
class ReLU(ChainLayer, keras.layers.ReLU):
    """keras.layers.ReLU; blocked, one pass of our element-wise kernel."""

    def chain(self):
        top, slope = self.max_value, self.negative_slope
        if self.threshold != 0 or (top is not None and slope != 0):
            return None
        if top == 6:
            return PostOps().eltwise("relu6")
        if top is not None:
            return PostOps().eltwise("bounded_relu", top)
        return PostOps().eltwise("leaky_relu", slope) if slope else PostOps().eltwise("relu")


@register(example="0.1")
class LeakyReLU(ChainLayer, keras.layers.LeakyReLU):
    """keras.layers.LeakyReLU; blocked, one pass of our element-wise kernel."""

    def chain(self):
        return PostOps().eltwise("leaky_relu", self.negative_slope)


@register
class ELU(ChainLayer, keras.layers.ELU):
    """keras.layers.ELU; blocked, one pass of our element-wise kernel."""

    def chain(self):
        return PostOps().eltwise("elu", self.alpha)

    def get_config(self):
        return super().get_config() | {"alpha": self.alpha}  # Keras derives it from the arguments


@register(example="shared_axes=[1, 2]")
class PReLU(ChainLayer, keras.layers.PReLU):
    """keras.layers.PReLU; blocked, a post-op where slopes differ by channel only, or not at all."""

    def chain(self):
        if not self.built:
            return None  # nothing says yet how many slopes there are
        slopes = self.alpha.shape
        if math.prod(slopes) == 1:
            return PostOps().binary("prelu", tf.reshape(self.alpha, []), "scalar")
        if math.prod(slopes) == slopes[-1]:
            return PostOps().binary("prelu", tf.reshape(self.alpha, [-1]), "channel")
        return None
