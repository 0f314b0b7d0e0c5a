"""Layer normalisation and padding of blocked activations against Keras and TensorFlow."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd

pytestmark = pytest.mark.each_isa


@pytest.mark.parametrize("channels", [2, 16, 21, 40, 96])
def test_layer_norm_equals_keras(floats, blocked, channels):
    x, gamma, beta = floats(2, 5, 7, channels), floats(channels), floats(channels)
    layer = keras.layers.LayerNormalization(epsilon=1e-3)
    layer.build(x.shape)
    layer.set_weights([gamma, beta])
    expected = layer(x).numpy()
    got = bd.ops.layer_norm(x, gamma, beta, layout="nhwc")
    np.testing.assert_allclose(got, expected, atol=2e-5)
    got = bd.ops.layer_norm(blocked.pack(x), gamma, beta, channels=channels).numpy()
    np.testing.assert_allclose(got, blocked.pack(expected), atol=2e-5)
    lanes = np.moveaxis(got, 1, -2).reshape(2, 5, 7, -1)
    assert not np.any(lanes[..., channels:])


@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 0), (2, 5), (1, 513), (2, 3, 4, 5)], ids=str)
@pytest.mark.parametrize("channels", [1, 17, 768])
def test_layer_norm_of_rows_of_any_axes(floats, shape, channels):
    x, gamma, beta = floats(*shape, channels), floats(channels), floats(channels)
    mean = x.astype(np.float64).mean(-1, keepdims=True)
    variance = x.astype(np.float64).var(-1, keepdims=True)
    expected = (x - mean) / np.sqrt(variance + 1e-3) * gamma + beta
    run = tf.function(lambda x: bd.ops.layer_norm(x, gamma, beta, layout="nhwc", channels=channels))
    for got in (run.python_function(x), run(tf.constant(x))):
        assert got.shape == x.shape
        np.testing.assert_allclose(got, expected, atol=2e-5)


@pytest.mark.parametrize("channels", [1, 16, 21, 96])
def test_without_a_mean_it_equals_keras_rms_normalization(floats, blocked, channels):
    x, gamma = floats(2, 5, 7, channels) + 3, floats(channels)
    layer = keras.layers.RMSNormalization(epsilon=1e-3)
    layer.build(x.shape)
    layer.set_weights([gamma])
    expected, beta = layer(x).numpy(), np.zeros(channels, "f")
    options = {"centered": False, "epsilon": 1e-3}
    got = bd.ops.layer_norm(x, gamma, beta, layout="nhwc", **options)
    np.testing.assert_allclose(got, expected, atol=2e-6)
    got = bd.ops.layer_norm(blocked.pack(x), gamma, beta, channels=channels, **options)
    np.testing.assert_allclose(got, blocked.pack(expected), atol=2e-6)


@pytest.mark.parametrize("src", [np.zeros(7, "f"), np.zeros((2, 3, 21), "f")])
def test_layer_norm_of_other_rows_is_refused(src):
    row = np.ones(20, "f")
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match=r"20\]; got"):
        bd.ops.layer_norm(src, row, row, layout="nhwc", channels=20)


@pytest.mark.parametrize("sides", [[[1, 2], [3, 0]], [[-1, 0], [0, -2]], [[-2, 3], [4, -5]]])
def test_pad_adds_and_cuts(floats, blocked, sides):
    x = floats(2, 5, 7, 20)
    wanted = np.pad(x, [[0, 0], *[[max(side, 0) for side in pair] for pair in sides], [0, 0]])
    for axis, (before, after) in enumerate(sides, 1):
        stop = wanted.shape[axis] + min(after, 0)
        wanted = np.take(wanted, np.arange(-min(before, 0), stop), axis)
    got = bd.ops.pad(blocked.pack(x), sides, channels=20)
    np.testing.assert_array_equal(got, blocked.pack(wanted))
