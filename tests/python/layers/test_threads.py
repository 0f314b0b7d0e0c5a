"""A layer keeps no state in a call: many threads may call it at once."""

from concurrent.futures import ThreadPoolExecutor

import keras
import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd

_LAYERS = {
    "axis": lambda: bd.layers.BatchNormalization(axis=1),
    "softmax": lambda: bd.layers.Activation("softmax"),
    "bicubic": lambda: bd.layers.UpSampling2D(2, interpolation="bicubic"),
    "conv": lambda: bd.layers.Conv2D(20, 3, groups=2, activation="relu"),
}


@pytest.mark.parametrize("name", _LAYERS)
def test_threads_call_one_layer(name):
    """Most of these compute by Keras on plain tensors, with reorders around it."""
    layer = _LAYERS[name]()
    x = tf.constant(np.random.default_rng(3).standard_normal((2, 8, 8, 20)), tf.float32)

    def call(_):
        return bd.layers.FromBlocked()(layer(bd.layers.ToBlocked()(x))).numpy()

    expected = call(0)
    with ThreadPoolExecutor(8) as pool:
        for result in pool.map(call, range(200)):
            np.testing.assert_array_equal(result, expected)


def test_threads_call_one_model():
    inputs = keras.Input((8, 8, 20))
    y = bd.layers.BatchNormalization(axis=1)(bd.layers.ToBlocked()(inputs))
    model = keras.Model(inputs, bd.layers.FromBlocked()(bd.layers.Activation("softmax")(y)))
    x = np.random.default_rng(3).standard_normal((2, 8, 8, 20)).astype(np.float32)
    expected = model(x).numpy()
    np.testing.assert_allclose(model.predict(x, verbose=0), expected, rtol=1e-5)
    with ThreadPoolExecutor(8) as pool:
        for result in pool.map(lambda _: model(x).numpy(), range(64)):
            np.testing.assert_array_equal(result, expected)
