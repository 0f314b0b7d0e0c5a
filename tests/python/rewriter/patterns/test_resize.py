"""Resizing and upsampling do not end a blocked region."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers


@pytest.fixture
def between(result_of, image):
    """between(*layers, size=...) -> Result of the layers between two convolutions."""

    def run(*stack, size=(6, 7), spec=None):
        model = keras.Sequential([keras.Input((*(spec or size), 16))])
        model.add(layers.Conv2D(32, 3, padding="same", activation="relu"))
        for layer in stack:
            model.add(layer)
        model.add(layers.Conv2D(16, 3, padding="same"))
        function = tf.function(lambda x: model(x, training=False), autograph=False)
        result = result_of(function, tf.TensorSpec((None, *(spec or size), 16)))
        result.assert_same(image(2, *size, 16))
        return result

    return run


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear"])
@pytest.mark.parametrize("factor", [2, 3, (1, 2), (3, 1), (2, 4)], ids=str)
def test_upsampling_of_keras(factor, interpolation, between):
    result = between(layers.UpSampling2D(factor, interpolation=interpolation))
    assert result.blockdnn == {"Conv": 2, "Resize": 1, "Reorder": 2}
    assert {"Tile", "ResizeBilinear"}.isdisjoint(result.ops)


def test_repetitions_of_open_sizes(between):
    result = between(layers.UpSampling2D(2), spec=(None, None))
    assert result.blockdnn == {"Conv": 2, "Resize": 1, "Reorder": 2}


def test_resizing_to_a_size(between):
    result = between(layers.Resizing(11, 5))
    assert result.blockdnn == {"Conv": 2, "Resize": 1, "Reorder": 2}


@pytest.mark.parametrize("options", [{}, {"align_corners": True}, {"half_pixel_centers": True}])
@pytest.mark.parametrize("op", ["ResizeBilinear", "ResizeNearestNeighbor"])
def test_every_coordinate(op, options, rewrite, weights, image):
    filters, last = weights(3, 3, 16, 32), weights(3, 3, 32, 16)

    def function(x):
        x = tf.nn.conv2d(x, filters, 1, "SAME")
        size = tf.shape(x)[1:3] * 2
        x = getattr(tf.raw_ops, op)(images=x, size=size, **options)
        return tf.nn.conv2d(tf.nn.relu(x), last, 1, "SAME")

    result = rewrite(function, [None, None, None, 16])
    assert result.blockdnn["Resize"] == 1 and result.blockdnn["Reorder"] == 2
    result.assert_same(image(2, 6, 7, 16))


def test_a_size_that_is_an_input_stays(rewrite, weights):
    filters = weights(3, 3, 16, 32)

    def function(x, size):
        return tf.image.resize(tf.nn.conv2d(x, filters, 1, "SAME"), size)

    result = rewrite(function, [2, 6, 7, 16], tf.TensorSpec([2], tf.int32))
    assert "size are not known" in result.reason("ResizeBilinear")


def test_a_repetition_with_another_reader(rewrite, weights, image):
    """Rows that are read by themselves are repeated by themselves."""
    filters, last = weights(3, 3, 16, 32), weights(3, 3, 32, 16)

    def function(x):
        x = tf.nn.conv2d(x, filters, 1, "SAME")
        rows = tf.repeat(x, 2, axis=1)
        both = tf.repeat(rows, 3, axis=2)
        return tf.nn.conv2d(rows, last, 1, "SAME"), tf.nn.conv2d(both, last, 1, "SAME")

    result = rewrite(function, [2, 4, 5, 16])
    assert result.blockdnn["Resize"] == 2 and "Tile" not in result.ops
    result.assert_same(image(2, 4, 5, 16))


def _u_net(up, channels=16, levels=3):
    """Encoder and decoder with skip connections, ending in a convolution of 2 channels."""
    x = y = keras.Input((32, 32, 3))
    skips = []
    for level in range(levels + 1):
        for _ in range(2):
            y = layers.Conv2D(channels << level, 3, padding="same", use_bias=False)(y)
            y = layers.ReLU()(layers.BatchNormalization()(y))
        if level < levels:
            skips.append(y)
            y = layers.MaxPooling2D()(y)
    for level, skip in reversed(list(enumerate(skips))):
        y = layers.Concatenate()([up(channels << level)(y), skip])
        for _ in range(2):
            y = layers.Conv2D(channels << level, 3, padding="same", activation="relu")(y)
    return keras.Model(x, layers.Conv2D(2, 1, activation="sigmoid")(y))


@pytest.mark.parametrize("kind", ["transposed", "nearest", "bilinear"])
def test_a_u_net_is_one_region(kind, result_of, image):
    def up(channels):
        if kind == "transposed":
            return layers.Conv2DTranspose(channels, 2, strides=2, padding="same")
        return layers.UpSampling2D(2, interpolation=kind)

    model = _u_net(up)
    for weight in model.weights:
        if "variance" in weight.path:
            weight.assign(np.random.default_rng(1).uniform(0.5, 2, weight.shape))
    function = tf.function(lambda x: model(x, training=False), autograph=False)
    result = result_of(function, tf.TensorSpec((None, 32, 32, 3)))
    op = "ConvTranspose" if kind == "transposed" else "Resize"
    assert result.blockdnn[op] == 3 and result.blockdnn["Conv"] == 15
    assert "Reorder" not in result.blockdnn and "Concat" not in result.blockdnn
    assert not result.report.declined and result.ops["BlockdnnRegion"] == 1
    assert [done for _, done in result.report.joined] == ["2 of 2"] * 3
    result.assert_same(image(2, 32, 32, 3))
