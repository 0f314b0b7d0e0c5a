"""What is not converted stays as it was, with a reason in the report."""

import keras
import pytest
import tensorflow as tf
from converts import converts

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
def test_another_device(rewrite, weights, device, converted):
    kernel = weights(3, 3, 16, 16)

    def function(x):
        x = tf.nn.conv2d(x, kernel, **_SAME)
        with tf.device(device):
            return tf.nn.conv2d(x, kernel, **_SAME, name="placed")

    result = rewrite(function, [1, 6, 6, 16])
    assert result.blockdnn["Conv"] == converted
    if converted == 1:
        assert result.reason("placed") == "it is placed on /device:GPU:0"


def _straight_through(function):
    return tf.custom_gradient(lambda kernel: (function(kernel), lambda gradient: gradient))


def _rounded(kernel):
    step = tf.reduce_max(tf.abs(kernel)) / 7
    return kernel + tf.stop_gradient(tf.round(kernel / step) * step - kernel)


@pytest.mark.parametrize(
    "make",
    [
        tf.sign,
        _rounded,
        _straight_through(tf.sign),
        lambda kernel: tf.clip_by_value(tf.abs(kernel), 0.1, 0.9),
        lambda kernel: tf.nn.l2_normalize(kernel, [0, 1, 2]),
        lambda kernel: tf.einsum("hwio,op->hwip", kernel, tf.round(kernel[0, 0] * 4)),
        lambda kernel: tf.where(tf.greater(kernel, 0), kernel, tf.floor(kernel)),
        lambda kernel: tf.math.cumsum(kernel, 3),
    ],
)
def test_weights_that_go_through_ops_are_folded(rewrite, weights, make):
    kernel = weights(3, 3, 16, 16)
    result = rewrite(lambda x: tf.nn.conv2d(x, make(kernel), **_SAME), [1, 6, 6, 16])
    assert result.blockdnn == {"Conv": 1, "Reorder": 2}, result.report.summary()


@converts([1, 6, 6, 16], reason=("Conv2D", "computed or assigned"))
def test_computed_weights(x, weights):
    return tf.nn.conv2d(x, weights(3, 3, 16, 16) * tf.reduce_mean(x), **_SAME)


@converts([1, 6, 6, 16], reason=("Conv2D", "computed or assigned"))
def test_weights_that_the_function_assigns(x, weights):
    kernel = weights(3, 3, 16, 16)
    y = tf.nn.conv2d(x, kernel, **_SAME)
    kernel.assign(kernel * 1.0)
    return y


def test_an_unknown_number_of_channels(rewrite, weights, image):
    kernel = weights(3, 3, 16, 16)
    result = rewrite(
        lambda x: tf.nn.conv2d(x, kernel, **_SAME), [None, None, None, None], tolerance=None
    )
    assert "input channels" in result.reason("Conv2D")
    result.assert_same(image(1, 6, 6, 16))


def test_an_unknown_rank(rewrite, weights, image):
    kernel = weights(3, 3, 16, 16)
    result = rewrite(lambda x: tf.nn.conv2d(x, kernel, **_SAME), tf.TensorSpec(None))
    assert "rank" in result.reason("Conv2D")
    result.assert_same(image(1, 6, 6, 16))


@converts([1, 6, 6, 16], reason=("Depthwise", "transposed"))
def test_other_convolutions(x, weights):
    return tf.nn.depthwise_conv2d_backprop_input(
        [1, 12, 12, 16], weights(3, 3, 16, 1), x, [1, 2, 2, 1], "SAME"
    )


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
@converts([1, 6, 6, 16], some={"Conv": 1}, options=Options(strict=True))
def test_an_odd_node_behind_leaves_the_rest_converted(x, odd, conv):
    """No pass may stumble over nodes of other types, which would leave the whole function."""
    x = tf.nn.relu(conv(x, 16))
    return x, odd(x)
