"""Keras's activation functions as post-ops."""

import keras

from ..ops.post_ops import PostOps
from .blocked_layer import from_blocked, to_blocked

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
# Those whose result tells the derivative: a gradient needs nothing else of the op that they end.
_FROM_RESULT = {"relu", "relu6", "elu", "tanh", "logistic", "exp"}


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

    While training only where its result tells its derivative: otherwise the gradient would have
    to run the op before it again.
    """
    if is_identity(function):
        return True
    entry = _POST_OPS.get(function)
    return entry is not None and (not training or (entry[0] in _FROM_RESULT and len(entry) == 1))


def on_plain(function, x, channels: int):
    """An activation without post-op, of a blocked tensor: it may even mix channels."""
    return to_blocked(function(from_blocked(x, channels)))
