"""Small networks to optimise, of both Keras versions."""

import keras
import numpy as np
import pytest
import tensorflow as tf

try:
    import tf_keras
except ImportError:
    tf_keras = None

KERAS = [
    pytest.param(keras, id="keras3"),
    pytest.param(tf_keras, id="keras2", marks=pytest.mark.skipif(not tf_keras, reason="tf_keras")),
]


@pytest.fixture(params=KERAS)
def library(request):
    return request.param


@pytest.fixture
def functional(library):
    """A network of one convolution, [N, 16, 16, 3] -> [N, 4]."""
    layers = library.layers
    x = library.Input([16, 16, 3])
    y = layers.Conv2D(16, 3, activation="relu")(x)
    return library.Model(x, layers.Dense(4)(layers.GlobalAveragePooling2D()(y)))


@pytest.fixture
def pictures(floats):
    return floats(8, 16, 16, 3)


@pytest.fixture
def same():
    def check(got, wanted):
        tf.nest.map_structure(
            lambda g, w: np.testing.assert_allclose(g, w, atol=1e-4, rtol=1e-4), got, wanted
        )

    return check
