"""What is not converted stays as it was, with a reason in the report."""

import keras
import pytest
import tensorflow as tf

from tf_blockdnn.python.rewriter import Options

_SAME = {"strides": 1, "padding": "SAME"}


def test_float64(rewrite):
    kernel = tf.Variable(tf.ones([3, 3, 16, 16], tf.float64))
    result = rewrite(
        lambda x: tf.nn.relu(tf.nn.conv2d(x, kernel, **_SAME)),
        tf.TensorSpec([1, 6, 6, 16], tf.float64),
    )
    assert result.blockdnn == {}
    assert "float64" in result.reason("Conv2D")
    result.assert_same(tf.random.normal([1, 6, 6, 16], dtype=tf.float64), tolerance=0)


def test_half(rewrite):
    kernel = tf.Variable(tf.ones([1, 1, 16, 16], tf.float16))
    result = rewrite(
        lambda x: tf.nn.conv2d(x, kernel, **_SAME), tf.TensorSpec([1, 6, 6, 16], tf.float16)
    )
    assert "float16" in result.reason("Conv2D")


@pytest.mark.parametrize("device, converted", [("GPU:0", 1), ("CPU:0", 2)])
def test_another_device(rewrite, weights, image, device, converted):
    kernel = weights(3, 3, 16, 16)

    def function(x):
        x = tf.nn.conv2d(x, kernel, **_SAME)
        with tf.device(device):
            return tf.nn.conv2d(x, kernel, **_SAME, name="placed")

    result = rewrite(function, [1, 6, 6, 16])
    assert result.blockdnn["Conv"] == converted
    if converted == 1:
        assert result.reason("placed") == "it is placed on /device:GPU:0"
    result.assert_same(image(1, 6, 6, 16))


def test_computed_weights(rewrite, weights, image):
    kernel = weights(3, 3, 16, 16)
    result = rewrite(lambda x: tf.nn.conv2d(x, kernel * tf.reduce_mean(x), **_SAME), [1, 6, 6, 16])
    assert "computed or assigned" in result.reason("Conv2D")
    result.assert_same(image(1, 6, 6, 16))


def test_weights_that_the_function_assigns(rewrite, weights, image):
    kernel = weights(3, 3, 16, 16)

    def function(x):
        y = tf.nn.conv2d(x, kernel, **_SAME)
        kernel.assign(kernel * 1.0)
        return y

    result = rewrite(function, [1, 6, 6, 16])
    assert "computed or assigned" in result.reason("Conv2D")
    result.assert_same(image(1, 6, 6, 16))


def test_an_unknown_number_of_channels(rewrite, weights, image):
    kernel = weights(3, 3, 16, 16)
    result = rewrite(lambda x: tf.nn.conv2d(x, kernel, **_SAME), [None, None, None, None])
    assert "input channels" in result.reason("Conv2D")
    result.assert_same(image(1, 6, 6, 16))


def test_an_unknown_rank(rewrite, weights, image):
    kernel = weights(3, 3, 16, 16)
    result = rewrite(lambda x: tf.nn.conv2d(x, kernel, **_SAME), tf.TensorSpec(None))
    assert "rank" in result.reason("Conv2D")
    result.assert_same(image(1, 6, 6, 16))


def test_other_convolutions(rewrite, weights, image):
    kernel = weights(3, 3, 16, 1)

    def function(x):
        return tf.nn.depthwise_conv2d_backprop_input(
            [1, 12, 12, 16], kernel, x, [1, 2, 2, 1], "SAME"
        )

    result = rewrite(function, [1, 6, 6, 16])
    assert "transposed" in result.reason("Depthwise")
    result.assert_same(image(1, 6, 6, 16))


def test_a_plain_function_is_left_alone(rewrite):
    result = rewrite(lambda x: tf.matmul(x, x) + 1.0, [4, 4])
    assert result.blockdnn == {} and result.trackables == []
    assert result.report.converted == []
    result.assert_same(tf.random.normal([4, 4]), tolerance=0)


def _int64_shape(x):
    return tf.reshape(x, tf.constant([-1, 576], tf.int64))


def _transposed_integers(x):
    return tf.transpose(tf.reshape(tf.cast(x, tf.int32), [1, 6, 2, 3, 16]), [0, 4, 1, 2, 3])


def _double(layer):
    layer.build([1, 36, 16])
    return lambda x: layer(tf.cast(tf.reshape(x, [1, 36, 16]), tf.float64))


def _sliced_constant(x):
    table = tf.range(100)
    return table[: tf.shape(x)[1]]


@pytest.mark.parametrize(
    "odd",
    [
        _int64_shape,
        _transposed_integers,
        _sliced_constant,
        _double(keras.layers.LSTM(4, dtype="float64")),
        _double(keras.layers.LayerNormalization(dtype="float64")),
    ],
    ids=["int64 shape", "transposed integers", "sliced constant", "LSTM", "LayerNormalization"],
)
def test_an_odd_node_behind_leaves_the_rest_converted(rewrite, weights, image, odd):
    """No pass may stumble over nodes of other types, which would leave the whole function."""
    kernel = weights(3, 3, 16, 16)

    def function(x):
        x = tf.nn.relu(tf.nn.conv2d(x, kernel, **_SAME))
        return x, odd(x)

    result = rewrite(function, [1, 6, 6, 16], options=Options(strict=True))
    assert result.blockdnn["Conv"] == 1
    result.assert_same(image(1, 6, 6, 16))
