"""Normalisations of bd.layers on plain tensors against Keras's, forward and backward."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from compared import ops_of, with_gradients

import tf_blockdnn as bd

_NAMES = ["LayerNormalization", "RMSNormalization"]


def _pair(name, shape, **options):
    made = [getattr(home.layers, name)(**options) for home in (keras, bd)]
    rng = np.random.default_rng(3)
    made[0].build(shape)
    weights = [rng.uniform(0.5, 2, w.shape) for w in made[0].get_weights()]
    for layer in made:
        if not layer.built:
            layer.build(shape)
        layer.set_weights(weights)
    return made


def _ops(layer, x):
    return ops_of(lambda x: with_gradients(layer, [x])[1], x)


@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize("shape", [(3, 20), (2, 5, 16), (2, 3, 4, 33), (0, 3, 8), (2, 1, 2, 3, 7)])
def test_they_equal_keras_with_their_gradients(floats, name, shape):
    x = tf.constant(floats(*shape) + 2)
    theirs, ours = _pair(name, shape)
    for a, b in zip(with_gradients(theirs, [x]), with_gradients(ours, [x]), strict=True):
        np.testing.assert_allclose(a, b, atol=2e-5 * max(1.0, np.abs(a).max(initial=0)))
    assert {"BlockdnnLayerNorm", "BlockdnnLayerNormGrad"} <= {*_ops(ours, x)}


@pytest.mark.parametrize(
    "options", [{"axis": [1, 2]}, {"dtype": "float64"}, {"dtype": "bfloat16"}], ids=str
)
@pytest.mark.parametrize("name", _NAMES)
def test_what_has_no_form_is_as_keras(floats, name, options):
    x = tf.cast(floats(2, 3, 4), options.get("dtype", "float32"))
    theirs, ours = _pair(name, x.shape, **options)
    for a, b in zip(with_gradients(theirs, [x]), with_gradients(ours, [x]), strict=True):
        np.testing.assert_array_equal(np.asarray(a, "float64"), np.asarray(b, "float64"))
    assert "BlockdnnLayerNorm" not in _ops(ours, x)


@pytest.mark.parametrize("name", _NAMES)
def test_a_mixed_policy_gets_its_type(floats, name):
    x = tf.constant(floats(2, 3, 16))
    theirs, ours = _pair(name, x.shape, dtype="mixed_bfloat16")
    a, b = theirs(x), ours(x)
    assert a.dtype == b.dtype
    np.testing.assert_allclose(tf.cast(a, tf.float32), tf.cast(b, tf.float32), atol=0.05)


def test_without_gamma_and_beta(floats):
    x = tf.constant(floats(2, 3, 16))
    theirs, ours = _pair("LayerNormalization", x.shape, center=False, scale=False)
    for a, b in zip(with_gradients(theirs, [x]), with_gradients(ours, [x]), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_the_gradient_has_a_gradient(floats):
    x = tf.constant(floats(2, 3, 16))

    weights = tf.constant(floats(2, 3, 16))
    ours = bd.layers.LayerNormalization()

    def definition(x):  # moments of Keras and TensorFlow stop the mean's gradient in the variance
        x -= tf.reduce_mean(x, -1, keepdims=True)
        return x * tf.math.rsqrt(tf.reduce_mean(x * x, -1, keepdims=True) + 1e-3)

    def second(function):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.reduce_sum(function(x) ** 3)
            loss = tf.reduce_sum(inner.gradient(y, x) * weights)
        return outer.gradient(loss, x)

    expected = second(definition)
    np.testing.assert_allclose(second(ours), expected, atol=1e-4 * np.abs(expected).max())


def test_convert_puts_both_into_a_plain_model(floats):
    x = keras.Input((5, 16))
    y = keras.layers.RMSNormalization(name="rms")(x)
    y = keras.layers.LayerNormalization(name="norm")(y)
    model = keras.Model(x, keras.layers.Activation("relu", name="relu")(y))
    converted = bd.layers.convert(model)
    assert [*converted.conversion.replaced] == ["rms", "norm"]
    assert not converted.conversion.reorders
    data = floats(2, 5, 16)
    np.testing.assert_allclose(converted(data), model(data), atol=1e-5)


@pytest.mark.parametrize("name", _NAMES)
def test_blocked_they_follow_a_convolution(floats, name):
    x = keras.Input((6, 6, 16))
    y = keras.layers.Conv2D(20, 3, padding="same", name="before")(x)
    y = getattr(keras.layers, name)(name="norm")(y)
    model = keras.Model(x, keras.layers.Conv2D(16, 3, name="after")(y))
    converted = bd.layers.convert(model)
    assert converted.conversion.replaced["norm"].endswith("blocked to blocked")
    data = floats(2, 6, 6, 16)
    np.testing.assert_allclose(converted(data), model(data), atol=2e-5)
