"""How gradients are registered, and the chain rule through several ops."""

from collections.abc import Callable

import tensorflow as tf

from ..ops.record import Called


def gradient_of(op: str) -> Callable:
    """Registers a function of (what was called, the gradients of its results) for an op of ours."""

    def register(function: Callable) -> Callable:
        tf.RegisterGradient(f"Blockdnn{op}")(lambda op, *upstream: function(Called(op), *upstream))
        return function

    return register


def vjp(function, inputs, dy) -> list:
    """The gradients of `function(*inputs)` for `dy`, zeros where it does not depend on an input.

    Each input gets the share of its own position, also where one tensor is passed twice.
    """
    with tf.GradientTape() as tape:
        copies = [tf.identity(x) for x in inputs]
        tape.watch(copies)
        y = function(*copies)
    return tape.gradient(
        y, copies, output_gradients=dy, unconnected_gradients=tf.UnconnectedGradients.ZERO
    )
