"""Compares gradients of our ops with those of a plain formula in float64."""

import numpy as np
import tensorflow as tf


def gradients(function, inputs, dy=None, second=None):
    """(y, gradients of sum(y * dy), gradients of sum(those * second) or None)."""
    inputs = [tf.convert_to_tensor(x) for x in inputs]
    with tf.GradientTape() as outer:
        outer.watch(inputs)
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            y = function(*inputs)
            loss = tf.reduce_sum(y * tf.cast(1.0 if dy is None else dy, y.dtype))
        first = [
            None if g is None else tf.convert_to_tensor(g) for g in tape.gradient(loss, inputs)
        ]
        if second is not None:
            total = sum(
                tf.reduce_sum(g * tf.cast(v, g.dtype))
                for g, v in zip(first, second, strict=True)
                if g is not None
            )
    zeros = tf.UnconnectedGradients.ZERO
    again = None
    if second is not None:
        again = outer.gradient(total, inputs, unconnected_gradients=zeros)
        again = [tf.convert_to_tensor(g) for g in again]
    return y, first, again


def close(ours, expected, rtol, what):
    """Within rtol of the largest expected number: sums of products err by their terms."""
    ours, expected = np.asarray(ours), np.asarray(expected)
    assert ours.shape == expected.shape, what
    limit = rtol * max(1.0, np.abs(expected).max(initial=0))
    np.testing.assert_allclose(ours, expected, rtol=0, atol=limit, err_msg=what)


def check(ours, plain, inputs, *, rtol=2e-5, second=True, graph=False):
    """`ours` in float32 and `plain` in float64 agree in value, gradients and second derivatives.

    With `graph` a graph gives what eager execution gives, too.
    """
    rng = np.random.default_rng(3)
    inputs = [np.asarray(x, np.float32) for x in inputs]
    exact = [x.astype(np.float64) for x in inputs]
    expected = plain(*[tf.constant(x) for x in exact])
    dy = rng.standard_normal(expected.shape)
    directions = [rng.standard_normal(x.shape) for x in inputs] if second else None
    y, first, again = gradients(ours, inputs, dy.astype(np.float32), directions)
    _, expected_first, expected_again = gradients(plain, exact, dy, directions)
    close(y, expected, rtol, "result")
    for i, (g, e) in enumerate(zip(first, expected_first, strict=True)):
        close(g, e, rtol, f"gradient of input {i}")
    if second:
        for i, (g, e) in enumerate(zip(again, expected_again, strict=True)):
            close(g, e, 5 * rtol, f"second derivative by input {i}")
    if graph:
        traced = tf.function(
            lambda *x: gradients(ours, x, dy.astype(np.float32))[1], autograph=False
        )
        for i, (g, e) in enumerate(zip(traced(*inputs), first, strict=True)):
            close(g, e, rtol, f"gradient of input {i} in a graph")
