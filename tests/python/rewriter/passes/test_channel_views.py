"""Groups of channels: what is computed on a view [N, H, W, G, K] is computed on the picture."""

import numpy as np
import pytest
import tensorflow as tf

from tf_blockdnn.python.rewriter import optimize_concrete

RNG = np.random.default_rng(1)
STEM, HEAD = (
    tf.constant(RNG.standard_normal((3, 3, *channels)).astype(np.float32))
    for channels in ((3, 32), (32, 8))
)


def check(between, tolerance=1e-5):
    """The report on convolution, `between`, convolution; compares with TensorFlow."""

    @tf.function(input_signature=[tf.TensorSpec((None, 8, 8, 3), tf.float32)])
    def network(x):
        y = between(tf.nn.conv2d(x, STEM, 1, "SAME"))
        return tf.nn.conv2d(y, HEAD, 1, "SAME")

    concrete = network.get_concrete_function()
    made = optimize_concrete(concrete)
    x = tf.constant(RNG.standard_normal((2, 8, 8, 3)).astype(np.float32))
    expected = concrete(x)
    np.testing.assert_allclose(made.concrete(x), expected, atol=tolerance * np.abs(expected).max())
    return made.report


def group_norm(x, groups, keep_dims=True):
    y = tf.reshape(x, [-1, 8, 8, groups, 32 // groups])
    mean, variance = tf.nn.moments(y, [1, 2, 4], keepdims=keep_dims)
    y = (y - mean) * tf.math.rsqrt(variance + 1e-5)
    scale = tf.constant(np.linspace(0.5, 2, 32, dtype=np.float32))
    return tf.reshape(y, tf.shape(x)) * scale + 1.0


@pytest.mark.parametrize("groups", [1, 2, 8, 32])
def test_group_normalisation_stays_blocked(groups):
    assert not check(lambda x: group_norm(x, groups)).reorders


def test_element_wise_work_on_a_view():
    factors = tf.constant(RNG.standard_normal((1, 1, 1, 4, 1)).astype(np.float32))

    def between(x):
        y = tf.nn.relu(tf.reshape(x, [-1, 8, 8, 4, 8])) * factors
        return tf.reshape(y, [-1, 8, 8, 32])

    assert not check(between).reorders


def test_what_mixes_channels_stays():
    def between(x):
        y = tf.reshape(x, [-1, 8, 8, 4, 8])
        return tf.reshape(tf.reduce_max(y, axis=4, keepdims=True) * y, [-1, 8, 8, 32])

    assert check(between).reorders


def test_large_means_do_not_cost_digits():
    def between(x):
        return group_norm(x + 1000.0, 8)

    check(between, tolerance=2e-3)  # TensorFlow's own error
