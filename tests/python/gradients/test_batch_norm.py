"""Batch normalisation of a training step and its gradients, against the formula in float64."""

import functools

import plain_formulas as plain
import pytest
import tensorflow as tf
from checked import check, close, gradients

import tf_blockdnn as bd
from tf_blockdnn.python.native import library

EPSILON = 1e-2


def joined(y, mean, variance):
    """All three results, so that each has a gradient."""
    return tf.concat([tf.reshape(y, [-1]), mean, 0.5 * variance], 0)


def ours(x, gamma, beta):
    channels = x.shape[-1]
    y, mean, variance = library().blockdnn_batch_norm(
        plain.block(x), gamma, beta, channels=channels, epsilon=EPSILON
    )
    return joined(plain.unblock(y, channels), mean, variance)


def formula(x, gamma, beta):
    # tf.nn.moments stops gradients of the mean inside the variance: second derivatives lack a term.
    mean = tf.reduce_mean(x, [0, 1, 2])
    variance = tf.reduce_mean(tf.square(x - mean), [0, 1, 2])
    y = gamma * (x - mean) / tf.sqrt(variance + EPSILON) + beta
    return joined(y, mean, variance)


@pytest.mark.each_isa
@pytest.mark.parametrize("channels", [3, 32, 20])
def test_batch_norm(channels, floats):
    x = floats(3, 5, 4, channels) + 0.5
    check(ours, formula, [x, floats(channels) + 1, floats(channels)], rtol=5e-5)


@pytest.mark.each_isa
@pytest.mark.parametrize("clamp, function", [("relu", tf.nn.relu), ("relu6", tf.nn.relu6)])
def test_clamps_behind(clamp, function, floats):
    """In a graph the gradient of a clamp is part of ours; a tensor that others read, too, is not
    mistaken for one. A second derivative goes through it."""
    channels = 20
    x, gamma = floats(3, 5, 4, channels), floats(channels) * 6 + 1

    def clamped(x, gamma, beta):
        y, mean, variance = library().blockdnn_batch_norm(
            plain.block(x), gamma, beta, channels=channels, epsilon=EPSILON
        )
        y = bd.ops.eltwise(y, f"eltwise({clamp})", channels=channels)
        return joined(plain.unblock(y, channels), mean, variance)

    def read_twice(x, gamma, beta):
        y, mean, variance = library().blockdnn_batch_norm(
            plain.block(x), gamma, beta, channels=channels, epsilon=EPSILON
        )
        z = y + bd.ops.eltwise(y, f"eltwise({clamp})", channels=channels)
        return joined(plain.unblock(z, channels), mean, variance)

    def exact(x, gamma, beta, twice=0.0):
        result, size = formula(x, gamma, beta), tf.size(x)
        y, rest = result[:size], result[size:]
        return tf.concat([function(y) + twice * y, rest], 0)

    inputs = [x, gamma, floats(channels)]
    check(clamped, exact, inputs, rtol=1e-4, graph=True)
    twice = functools.partial(exact, twice=1.0)
    check(read_twice, twice, inputs, rtol=1e-4, graph=True)
    traced = tf.function(lambda *x: gradients(clamped, x, second=inputs), autograph=False)
    first = tf.function(lambda *x: gradients(clamped, x), autograph=False)
    nodes = first.get_concrete_function(*inputs).graph.as_graph_def().node
    grads = [node for node in nodes if node.op == "BlockdnnBatchNormGrad"]
    assert [node.attr["clamp"].s.decode() for node in grads] == [clamp]
    eager = gradients(clamped, inputs, second=inputs)
    for ours_, expected in zip(traced(*inputs)[2], eager[2], strict=True):
        close(ours_, expected, 1e-4, "second derivative in a graph")


@pytest.mark.parametrize("shape", [(2, 2, 5, 16), (2, 2, 3, 4, 5, 16)])
def test_one_and_three_dimensions(shape, floats):
    x = floats(*shape)
    channels = 32
    y, mean, _ = library().blockdnn_batch_norm(
        x, tf.ones([channels]), tf.zeros([channels]), channels=channels
    )
    assert y.shape == shape
    axes = [0, *range(2, len(shape) - 1)]
    expected = tf.reshape(tf.reduce_mean(x, axes), [-1])
    tf.debugging.assert_near(mean, expected, atol=1e-6)


@pytest.mark.parametrize(
    "src, rows, message",
    [
        ((2, 2, 3, 3, 16), (20, 21), r"must be \[20\]"),
        ((2, 1, 3, 3, 16), (20, 20), r"must be blocked, \[N, 2, .., 16\]"),
        ((2, 16), (20, 20), "must be blocked"),
    ],
)
def test_errors(src, rows, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        library().blockdnn_batch_norm(
            tf.zeros(src), tf.zeros(rows[:1]), tf.zeros(rows[1:]), channels=20
        )
