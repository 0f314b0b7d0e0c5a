"""Chains of 1-D layers are one blocked region, as long as what stands between them allows it."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from converts import converts

from tf_blockdnn.python.targets import optimize


def _conv1d(kernel, **options):
    return lambda x: tf.nn.conv1d(x, kernel, **{"stride": 1, "padding": "SAME", **options})


def test_a_chain_is_one_region(rewrite, weights):
    scale = weights(32)

    def function(x):
        y = tf.nn.relu(tf.nn.bias_add(_conv1d(weights(3, 16, 32))(x), scale))
        y = tf.nn.relu(_conv1d(weights(5, 32, 32), stride=2)(y) * scale + weights(1, 1, 32))
        return _conv1d(weights(3, 32, 16))(y)

    result = rewrite(function, [None, 20, 16])
    assert result.blockdnn == {"Conv": 3, "Reorder": 2}
    assert result.post_ops()[0].endswith("eltwise(relu)")


@pytest.mark.parametrize("width", [None, 20, 21])
@pytest.mark.parametrize("padding", ["same", "valid", "causal"])
def test_dilated_layers_are_one_region(rewrite, image, width, padding):
    """TensorFlow cuts what a dilation leaves out into images of their own, and back."""
    x = y = keras.Input((width, 16))
    for dilation in (2, 1, 4):
        convolution = keras.layers.Conv1D(32, 3, padding=padding, dilation_rate=dilation)
        z = keras.layers.ReLU()(keras.layers.BatchNormalization()(convolution(y)))
        y = z if padding == "valid" or y is x else keras.layers.Add()([y, z])
    result = rewrite(keras.Model(x, y), [None, width, 16], tolerance=None)
    assert result.blockdnn == {"Conv": 3, "Reorder": 2}
    assert {"SpaceToBatchND", "BatchToSpaceND"}.isdisjoint(result.ops)
    result.assert_same(image(2, width or 23, 16))


@converts(
    [None, 21, 16],
    some={"Conv": 4, "Reorder": 1, "Pool": 1, "GlobalPool": 1},
    ops={"ConcatV2": 0, "MaxPool": 0, "Mean": 0, "Pad": 0},
)
def test_residuals_concatenation_padding_and_pooling(x, weights):
    second = weights(3, 32, 32)
    y = _conv1d(weights(3, 16, 32))(x)
    y = tf.nn.relu(y + _conv1d(second)(y))
    y = tf.concat([y, _conv1d(second)(y)], 2)
    y = tf.pad(y, [[0, 0], [2, 0], [0, 0]])
    y = tf.nn.relu(_conv1d(weights(3, 64, 32), padding="VALID")(y))
    y = tf.nn.max_pool1d(y, 2, 2, "SAME")
    return tf.reduce_mean(y, 1)


def _halves(y):
    return y[..., :32], y[:, :, 32:]


@pytest.mark.parametrize(
    "cut",
    [_halves, lambda y: tf.split(y, 2, -1), lambda y: tf.split(y, [32, 32], 2)],
    ids=["slices", "split", "sizes"],
)
def test_gated_layers_are_one_region(rewrite, weights, cut):
    """WaveNet's: slices of channels, and a sum with what is no result of a convolution."""

    def function(x):
        for kernel in (weights(3, 32, 64), weights(5, 32, 64)):
            a, b = cut(_conv1d(kernel)(x))
            x += tf.tanh(a) * tf.sigmoid(b)
        return _conv1d(weights(3, 32, 48))(x)

    result = rewrite(function, [None, 50, 32])
    assert result.blockdnn == {"Concat": 4, "Conv": 3, "Eltwise": 4, "Reorder": 2}


@converts([None, 50, 16], {"Conv": 2, "Join": 1, "Reorder": 2}, ops={"StridedSlice": 1})
def test_every_other_pixel_of_lines(x, weights):
    """A stride of a blocked tensor is TensorFlow's StridedSlice of it."""
    y = _conv1d(weights(3, 16, 32))(x)
    return _conv1d(weights(3, 32, 32))(tf.concat([y, y], 1)[:, ::2])


@converts([None, 50, 16], {"Conv": 2, "Pad": 1, "Reorder": 2})
def test_a_part_of_lines(x, weights):
    y = _conv1d(weights(3, 16, 32))(x)
    return _conv1d(weights(3, 32, 32))(y[:, 3:-7])


@pytest.mark.parametrize("library", [keras, tf_keras], ids=["keras", "tf_keras"])
def test_normalised_layers_are_one_region(rewrite, library):
    """The scale has channels where the variance that it multiplies has one."""
    layers = library.layers
    x = y = library.Input((20, 16))
    for _ in range(3):
        y = layers.Conv1D(32, 3, padding="same")(y)
        y = layers.ReLU()(layers.LayerNormalization()(y))
    result = rewrite(library.Model(x, y), [None, 20, 16])
    assert result.blockdnn == {"Conv": 3, "Eltwise": 3, "LayerNorm": 3, "Reorder": 2}


def test_a_network_of_keras():
    layers = keras.layers
    model = keras.Sequential([keras.Input((40, 16))])
    for channels in (32, 32, 64):
        model.add(layers.Conv1D(channels, 3, padding="same", use_bias=False))
        model.add(layers.BatchNormalization())
        model.add(layers.ReLU())
    model.add(layers.GlobalAveragePooling1D())
    model.add(layers.Dense(10))
    for variable in model.variables:
        if "variance" in variable.path:
            variable.assign(np.random.default_rng(0).uniform(0.5, 2.0, variable.shape))
    fast = optimize(model)
    counts = fast.report.counts()
    assert counts["BlockdnnConv"] == 3 and counts["BlockdnnReorder"] == 1
    x = tf.random.normal([2, 40, 16])
    np.testing.assert_allclose(fast(x), model(x), atol=1e-5)


@pytest.mark.parametrize(
    "between",
    [
        lambda y: y * tf.constant(np.linspace(1.0, 2.0, 2 * 9 * 16, dtype="f").reshape(2, 9, 16)),
        lambda y: tf.nn.softmax(y, 1),
    ],
)
@converts([2, 9, 16], some={"Conv": 2, "Reorder": 4})
def test_other_work_between_them_ends_the_region(x, between, weights):
    kernel = weights(3, 16, 16)
    return _conv1d(kernel)(between(_conv1d(kernel)(x)))


@converts([2, 9, 16], some={"Conv": 2, "Reorder": 3})
def test_what_is_read_between_them_stays(x, weights):
    kernel = weights(3, 16, 16)
    y = tf.nn.relu(_conv1d(kernel)(x))
    return _conv1d(kernel)(y), y


@pytest.mark.parametrize(
    "between",
    [lambda y: tf.concat([y, y], 1), lambda y: y * tf.reduce_mean(y, 1, keepdims=True)],
    ids=["joined along W", "scaled by means"],
)
@converts([2, 9, 16], some={"Conv": 2, "Reorder": 2})
def test_work_along_the_width_keeps_the_region(x, between, weights):
    kernel = weights(3, 16, 16)
    return _conv1d(kernel)(between(_conv1d(kernel)(x)))
