"""Convolutions for which two reorders would cost more than they gain stay with TensorFlow."""

import pytest
import tensorflow as tf
from converts import converts

_SAME = {"strides": 1, "padding": "SAME"}


@converts([None, None, None, 64], {}, reason=("Conv2D", "two reorders would cost more"))
def test_a_lone_pointwise_convolution_is_left_alone(x, conv):
    return conv(x, 32, 1)


@pytest.mark.parametrize(
    "window, stride, pays", [(3, 1, True), (5, 1, True), (7, 1, False), (3, 2, False)]
)
def test_a_lone_depthwise_convolution_pays_if_small(rewrite, weights, window, stride, pays):
    strides = [1, stride, stride, 1]
    result = rewrite(
        lambda x: tf.nn.depthwise_conv2d(x, weights(window, window, 32, 1), strides, "SAME"),
        [1, 8, 8, 32],
    )
    assert result.blockdnn == ({"Conv": 1, "Reorder": 2} if pays else {})
    assert pays or "two reorders" in result.reason("depthwise")


@converts([2, 4, 9, 32], {"InnerProduct": 2})
def test_dense_layers_on_rows_of_tokens_are_products(x, weights):
    """[N, P, T, C] looks like pictures; without a convolution nearby blocks are of no use."""
    y = tf.nn.relu(tf.tensordot(tf.math.bessel_i0e(x), weights(32, 64), 1))
    return tf.math.bessel_i0e(tf.tensordot(y, weights(64, 32), 1))


@converts([1, 8, 8, 32], {"Conv": 2, "Reorder": 1})
def test_the_two_together_pay(x, weights, conv):
    y = tf.nn.depthwise_conv2d(x, weights(3, 3, 32, 1), [1, 1, 1, 1], "SAME")
    return conv(y, 64, 1)


@pytest.mark.parametrize("channels", [16, 256])
def test_a_larger_kernel_pays_alone(rewrite, weights, channels):
    result = rewrite(
        lambda x: tf.nn.conv2d(x, weights(3, 3, channels, channels), **_SAME), [1, 8, 8, channels]
    )
    assert result.blockdnn == {
        "Conv": 1,
        "Reorder": 2 if channels == 16 else 1,
    }  # much: plain store


@converts([1, 8, 8, 32], {"Conv": 2, "Reorder": 2}, reason=("Conv2D_2", "two reorders"))
def test_only_the_losing_part_of_a_function_stays(x, conv):
    y = tf.nn.relu(conv(x, 32))
    y = tf.math.bessel_i0e(conv(y, 32))
    return tf.math.bessel_i0e(conv(y, 16, 1))


@converts([None, None, None, 5], {"Conv": 1})
def test_without_reorders_nothing_is_lost(x, conv):
    """Few channels are read and written plain."""
    return conv(x, 1, 1)
