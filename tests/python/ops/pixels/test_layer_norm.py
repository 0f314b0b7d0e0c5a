"""Layer normalisation and padding of blocked activations against Keras and TensorFlow."""

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd

pytestmark = pytest.mark.each_isa


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


@pytest.mark.parametrize("src", [np.zeros(7, "f"), np.zeros((2, 3, 21), "f")])
def test_layer_norm_of_other_rows_is_refused(src):
    row = np.ones(20, "f")
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match=r"20\]; got"):
        bd.ops.layer_norm(src, row, row, layout="nhwc", channels=20)
