"""Batch normalisation folded into convolutions: every spelling, every obstacle."""

import numpy as np
import pytest
import tensorflow as tf
from converts import converts

_EPSILON = 1e-3


@pytest.fixture
def norm(weights):
    """Makes a batch normalisation with negative gammas and tiny variances."""

    def make(channels, fused=False, training=False):
        gamma = weights(channels, low=-1.5, high=1.5)
        beta, mean = weights(channels, low=-1, high=1), weights(channels, low=-1, high=1)
        variance = weights(channels, low=0.5, high=2.0)
        variance.assign(tf.where(tf.range(channels) % 5 == 0, 1e-6, variance))

        def keras_form(x):
            shape = [1, 1, 1, channels]
            scale = tf.math.rsqrt(tf.reshape(variance, shape) + _EPSILON)
            scale *= tf.reshape(gamma, shape)
            shift = tf.reshape(beta, shape) - tf.reshape(mean, shape) * scale
            return x * scale + shift

        def fused_form(x):
            y, *_ = tf.compat.v1.nn.fused_batch_norm(
                x, gamma, beta, mean, variance, epsilon=_EPSILON, is_training=training
            )
            return y

        return fused_form if fused else keras_form

    return make


@pytest.mark.parametrize("fused", [False, True])
def test_folds_into_a_convolution(rewrite, norm, fused, conv):
    bn = norm(20, fused)
    result = rewrite(lambda x: bn(conv(x, 20)), [None, 9, 9, 16])
    assert result.blockdnn == {"Conv": 1, "Reorder": 2}
    assert result.post_ops() == ["binary(add,channel)"]
    assert not {"Mul", "AddV2", "Rsqrt", "FusedBatchNormV3"} & set(result.ops)


def test_folds_through_a_bias(rewrite, weights, norm, conv):
    bn = norm(32)
    result = rewrite(lambda x: bn(tf.nn.bias_add(conv(x, 32, 1), weights(32))), [1, 5, 5, 16])
    assert result.post_ops() == ["binary(add,channel)"]


@pytest.mark.parametrize("multiplier", [1, 2])
def test_folds_into_depthwise(rewrite, weights, norm, multiplier, conv):
    bn = norm(24 * multiplier)

    def function(x):
        x = conv(x, 24)
        return bn(tf.nn.depthwise_conv2d(x, weights(3, 3, 24, multiplier), [1, 1, 1, 1], "SAME"))

    result = rewrite(function, [1, 8, 8, 3])
    assert result.blockdnn == {"Conv": 2, "Reorder": 1}
    assert sorted(result.post_ops()) == ["", "binary(add,channel)"]


def test_two_in_a_row_fold_into_one(rewrite, norm, conv):
    first, second = norm(16), norm(16, fused=True)
    result = rewrite(lambda x: second(first(conv(x, 16, 3, 1, "VALID"))), [1, 6, 6, 16])
    assert result.post_ops() == ["binary(add,channel)"]


def test_is_exact_in_float64(rewrite, weights):
    """A tiny variance and a large mean cancel: float32 arithmetic would lose digits."""
    kernel = tf.Variable(tf.pad(tf.eye(16)[None, None], [[1, 1], [1, 1], [0, 0], [0, 0]]))
    mean, variance = tf.Variable(tf.fill([16], 1000.0)), tf.Variable(tf.fill([16], 1e-8))
    beta = tf.Variable(tf.zeros([16]))

    def function(x):
        scale = tf.math.rsqrt(variance + 1e-7)
        return tf.nn.conv2d(x, kernel, 1, "SAME") * scale + (beta - mean * scale)

    result = rewrite(function, [1, 1, 1, 16])
    x = np.full([1, 1, 1, 16], 1000.0, np.float32)
    scale = 1 / np.sqrt(np.float64(np.float32(1e-8)) + np.float64(np.float32(1e-7)))
    # Exactly 0 in real numbers; the two products are rounded once each.
    bound = 1000.0 * scale * 2.0**-23
    assert np.max(np.abs(result.concrete(x))) <= bound


def test_a_convolution_with_two_consumers_keeps_its_weights(rewrite, norm, conv):
    bn = norm(16)

    def function(x):
        y = conv(x, 16)
        return bn(y) + tf.nn.tanh(y)

    result = rewrite(function, [1, 6, 6, 16])
    assert result.post_ops() == [""]
    assert (
        "binary(mul,channel)"
        in result.post_ops("BlockdnnEltwise")[0] + (result.post_ops("BlockdnnEltwise")[-1])
    )


def test_a_fetched_convolution_keeps_its_weights(rewrite, norm, conv):
    bn = norm(16)

    def function(x):
        y = conv(x, 16)
        return y, conv(bn(y), 16)

    result = rewrite(function, [1, 6, 6, 16])
    assert result.blockdnn["Conv"] == 2
    assert result.post_ops()[0] == ""


@converts([4, 6, 6, 16], ops={"FusedBatchNormV3": 1}, reason=("FusedBatchNorm", "is_training"))
def test_batch_statistics_are_not_folded(x, norm, conv):
    bn = norm(16, fused=True, training=True)
    return bn(conv(x, 16))


def test_statistics_that_the_function_updates_are_not_folded(rewrite, weights, image, conv):
    mean = weights(16)

    def function(x):
        y = conv(x, 16) - mean
        mean.assign_add(tf.ones([16]))
        return y

    result = rewrite(function, [1, 4, 4, 16], tolerance=None)
    assert result.post_ops() == [""]
    x = image(1, 4, 4, 16)
    first, second = result.concrete(x), result.concrete(x)
    np.testing.assert_allclose(first - second, np.ones([1, 4, 4, 16]), atol=1e-5)


def test_before_a_convolution_it_becomes_a_channel_wise_chain(rewrite, norm, conv):
    """Pre-activation networks: convolution, batch norm after an addition, relu, convolution."""
    bn = norm(32)

    def function(x):
        y = conv(x, 32)
        z = conv(tf.nn.relu(bn(y)), 32)
        return y + z

    result = rewrite(function, [1, 6, 6, 32])
    assert result.blockdnn == {"Conv": 2, "Eltwise": 1, "Reorder": 2}
    chain = "binary(mul,channel);binary(add,channel);eltwise(relu)"
    assert result.post_ops("BlockdnnEltwise") == [chain]
    assert sorted(result.post_ops()) == ["", "sum()"]


@pytest.mark.parametrize("to", [1e20, 1e-20], ids=["beyond", "below"])
@pytest.mark.parametrize("is_depthwise", [False, True])
def test_weights_that_float32_does_not_hold_are_not_made(rewrite, to, is_depthwise):
    """Each result is an ordinary number, which is scaled behind the convolution."""
    shape = (3, 3, 16, 1) if is_depthwise else (3, 3, 16, 16)
    kernel = tf.constant(np.random.default_rng(3).uniform(0.2, 1.0, shape) * to, tf.float32)

    def function(x):
        x = (tf.abs(x) + 1.0) / to
        if is_depthwise:
            y = tf.nn.depthwise_conv2d(x, kernel, [1, 1, 1, 1], "SAME")
        else:
            y = tf.nn.conv2d(x, kernel, 1, "SAME")
        return tf.math.log(y * np.linspace(to * 0.5, to, 16).astype(np.float32)) / 46.0

    result = rewrite(function, [None, 9, 9, 16])
    assert "binary(mul,channel)" in result.post_ops()[0]
