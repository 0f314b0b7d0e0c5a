"""Keras's activation functions as post-ops, and activations as layers."""

import math

import keras
import tensorflow as tf

from ..gradients.chain import FROM_RESULT
from ..ops.pixels.eltwise import eltwise
from ..ops.post_ops import PostOps
from .blocked_layer import BlockedLayer, from_blocked, on_images, to_blocked
from .classes import register
from .fusing import extend

# function -> arguments of PostOps.eltwise.
_POST_OPS = {
    keras.activations.relu: ("relu",),
    keras.activations.relu6: ("relu6",),
    keras.activations.leaky_relu: ("leaky_relu", 0.2),
    keras.activations.elu: ("elu",),
    keras.activations.selu: ("elu", 1.6732632423543772, None, 1.0507009873554805),
    keras.activations.tanh: ("tanh",),
    keras.activations.sigmoid: ("logistic",),
    keras.activations.silu: ("swish",),
    keras.activations.gelu: ("gelu_erf",),
    keras.activations.softplus: ("soft_relu",),
    keras.activations.softsign: ("softsign",),
    keras.activations.exponential: ("exp",),
    keras.activations.hard_sigmoid: ("hard_sigmoid",),
    keras.activations.hard_silu: ("hard_swish",),
    keras.activations.mish: ("mish",),
}


def is_identity(function) -> bool:
    """Whether an activation does nothing."""
    return function is None or function is keras.activations.linear


def append(chain: PostOps, function) -> "PostOps | None":
    """The chain with the activation after it; None where there is no post-op for it."""
    if is_identity(function):
        return chain
    entry = _POST_OPS.get(function)
    return None if entry is None else chain.eltwise(*entry)


def fuses(function, training) -> bool:
    """Whether the activation belongs into the op before it.

    While training only where the result tells the derivative: otherwise the gradient would have
    to run the op before it again.
    """
    if is_identity(function):
        return True
    entry = _POST_OPS.get(function)
    return entry is not None and (not training or (entry[0] in FROM_RESULT and len(entry) == 1))


def chain_of(layer, training) -> PostOps:
    """Bias and activation of a layer, as far as they belong into the op before."""
    chain = PostOps()
    if layer.use_bias:
        chain = chain.binary("add", tf.convert_to_tensor(layer.bias), "channel")
    return append(chain, layer.activation) if fuses(layer.activation, training) else chain


def on_plain(function, x, channels: int):
    """An activation without post-op, of a blocked tensor: it may even mix channels."""
    return to_blocked(function(from_blocked(x, channels)))


class ChainLayer(BlockedLayer):
    """A layer that is a chain of post-ops where it is blocked."""

    def chain(self) -> "PostOps | None":
        """The chain, or None where there is none for these arguments."""
        raise NotImplementedError

    def call(self, inputs, training=None):
        self.refuse_xla()
        chain = self.chain() if self.reads_blocked else None
        if chain is None:
            return self.by_keras(inputs)
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
        return append(PostOps(), self.activation)


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
