"""Graphs of NCHW tensors convert as those of NHWC ones do, which TensorFlow may not even run."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from converts import converts
from keras import layers

from tf_blockdnn.python.rewriter.verify import difference


def _stack(model_format, channels=16):
    """A network of Keras in either order of dimensions, of equal weights."""
    options = {"data_format": model_format}
    axis = -1 if model_format == "channels_last" else 1
    x = y = keras.Input((12, 12, channels) if axis == -1 else (channels, 12, 12))
    for filters in (32, 32):
        y = layers.Conv2D(filters, 3, padding="same", use_bias=False, **options)(y)
        y = layers.BatchNormalization(axis=axis)(y)
        y = layers.ReLU()(y)
    y = layers.Add()([y, layers.Conv2D(32, 1, **options)(x)])
    y = layers.MaxPooling2D(2, **options)(y)
    z = layers.DepthwiseConv2D(3, strides=2, padding="same", **options)(
        layers.ZeroPadding2D(((0, 1), (2, 0)), **options)(y)
    )
    z = layers.Conv2DTranspose(16, 2, strides=2, **options)(layers.LeakyReLU()(z))
    z = layers.Concatenate(axis=axis)([z, layers.Activation("tanh")(z)])
    z = layers.GlobalAveragePooling2D(**options)(z)
    return keras.Model(x, layers.Dense(5)(z))


def _randomise(model):
    rng = np.random.default_rng(2)
    for weight in model.weights:
        low = 0.5 if "variance" in weight.path else -0.3
        weight.assign(rng.uniform(low, low + 0.6, weight.shape))


def test_a_network_of_keras(result_of, image):
    first, last = _stack("channels_first"), _stack("channels_last")
    _randomise(last)
    first.set_weights(last.get_weights())
    x = image(2, 12, 12, 16)
    result = result_of(tf.function(first, autograph=False), tf.TensorSpec((None, 16, 12, 12)))
    like = result_of(tf.function(last, autograph=False), tf.TensorSpec((None, 12, 12, 16)))
    assert result.blockdnn == like.blockdnn
    assert result.ops["Transpose"] == 1  # of the input
    got = result.concrete(tf.transpose(x, (0, 3, 1, 2)))
    assert difference(last(x).numpy(), got.numpy()) <= 1e-5


def _first(op, **attributes):
    """An op of NCHW tensors, as graphs from elsewhere have them."""
    return lambda *args: op(*args, data_format="NCHW", **attributes)


@pytest.mark.parametrize(
    "strides, padding", [(1, "SAME"), (2, "VALID"), (1, [[0, 0], [0, 0], [1, 2], [0, 3]])], ids=str
)
def test_convolution_and_batch_normalisation(strides, padding, rewrite, weights, image):
    filters, scale = weights(3, 3, 16, 32), np.abs(weights(32)) + 0.5
    bias, mean = weights(32), weights(32)

    def network(conv, bias_add, normalise, pool, x):
        y = bias_add(conv(x, filters), bias)
        y, *_ = normalise(y, scale, bias, mean, scale)
        return pool(tf.nn.relu(y))

    def formatted(data_format):
        def conv(x, w):
            pads = padding
            if data_format == "NHWC" and not isinstance(padding, str):
                pads = [padding[0], *padding[2:], padding[1]]
            return tf.nn.conv2d(x, w, strides, pads, data_format=data_format)

        return lambda x: network(
            conv,
            lambda x, b: tf.nn.bias_add(x, b, data_format=data_format),
            lambda *a: tf.compat.v1.nn.fused_batch_norm(
                *a, is_training=False, data_format=data_format
            ),
            lambda x: tf.nn.max_pool2d(x, [2, 3], [1, 2], "VALID", data_format=data_format),
            x,
        )

    x = image(2, 9, 10, 16)
    # Without oneDNN TensorFlow pools no NCHW.
    result = rewrite(formatted("NCHW"), [None, 16, 9, 10], tolerance=None)
    assert result.blockdnn == {"Conv": 1, "Pool": 1, "Reorder": 2}
    got = result.concrete(tf.transpose(x, (0, 3, 1, 2)))
    wanted = tf.transpose(formatted("NHWC")(x), (0, 3, 1, 2))
    assert difference(wanted.numpy(), got.numpy()) <= 1e-5


def test_statistics_that_are_read_stay(rewrite, weights):
    scale = np.ones(16, "float32")

    def function(x):
        y, mean, _ = tf.compat.v1.nn.fused_batch_norm(
            x, scale, scale, data_format="NCHW", is_training=True
        )
        return y, mean

    result = rewrite(function, [2, 16, 4, 4])
    (node,) = [node for node in result.nodes if node.op == "FusedBatchNormV3"]
    assert node.attr["data_format"].s == b"NCHW"


@converts([2, 16, 8, 9], {"Conv": 2, "Reorder": 2}, ops={"Transpose": 2})
def test_transposes_between_convolutions_cancel(x, weights):
    """As converters from other frameworks write them, around each convolution."""

    def conv(x, w):
        y = tf.nn.conv2d(tf.transpose(x, (0, 2, 3, 1)), w, 1, "SAME")
        return tf.transpose(y, (0, 3, 1, 2))

    return conv(
        tf.nn.relu(conv(x, weights(3, 3, 16, 32)) * weights(1, 32, 1, 1) + 1.0),
        weights(3, 3, 32, 16),
    )


@converts([2, 16, 8, 9])
def test_a_constant_along_the_width_stays_where_it_is(x, weights, conv):
    y = conv(tf.transpose(x, (0, 2, 3, 1)), 16)
    return tf.nn.relu(tf.transpose(y, (0, 3, 1, 2)) + weights(9))


@pytest.mark.parametrize(
    "axes, keepdims", [([1], True), ([2, 3], True), ([3, -2], False), ([1], False), ([2], False)]
)
@pytest.mark.parametrize("reduce", [tf.reduce_mean, tf.reduce_max])
def test_reductions_are_those_of_the_picture(reduce, axes, keepdims, rewrite, conv):
    """Kept dimensions stay in order; without them N, C and W would be N, W, C."""

    def function(x):
        y = conv(tf.transpose(x, [0, 2, 3, 1]), 32, 1)
        y = reduce(tf.transpose(y, [0, 3, 1, 2]), axes, keepdims=keepdims)
        return tf.transpose(y, [0, 2, 3, 1]) if keepdims else y

    result = rewrite(function, [None, 16, 6, 5])
    assert result.ops["Transpose"] == 1 + (axes == [2])
