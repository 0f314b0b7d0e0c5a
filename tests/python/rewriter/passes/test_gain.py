"""Convolutions for which two reorders would cost more than they gain stay with TensorFlow."""

import pytest
import tensorflow as tf

_SAME = {"strides": 1, "padding": "SAME"}


def test_a_lone_pointwise_convolution_is_left_alone(rewrite, weights, image):
    kernel = weights(1, 1, 64, 32)
    result = rewrite(lambda x: tf.nn.conv2d(x, kernel, **_SAME), [None, None, None, 64])
    assert result.blockdnn == {}
    assert "two reorders would cost more" in result.reason("Conv2D")
    result.assert_same(image(1, 5, 5, 64))


@pytest.mark.parametrize(
    "window, stride, pays", [(3, 1, True), (5, 1, True), (7, 1, False), (3, 2, False)]
)
def test_a_lone_depthwise_convolution_pays_if_small(rewrite, weights, image, window, stride, pays):
    kernel, strides = weights(window, window, 32, 1), [1, stride, stride, 1]
    result = rewrite(lambda x: tf.nn.depthwise_conv2d(x, kernel, strides, "SAME"), [1, 8, 8, 32])
    assert result.blockdnn == ({"Conv": 1, "Reorder": 2} if pays else {})
    assert pays or "two reorders" in result.reason("depthwise")
    result.assert_same(image(1, 8, 8, 32))


def test_dense_layers_on_rows_of_tokens_are_products(rewrite, weights, image):
    """[N, P, T, C] looks like pictures; without a convolution nearby blocks are of no use."""
    first, second = weights(32, 64), weights(64, 32)

    def function(x):
        y = tf.nn.relu(tf.tensordot(tf.math.bessel_i0e(x), first, 1))
        return tf.math.bessel_i0e(tf.tensordot(y, second, 1))

    result = rewrite(function, [2, 4, 9, 32])
    assert result.blockdnn == {"InnerProduct": 2}
    result.assert_same(image(2, 4, 9, 32))


def test_the_two_together_pay(rewrite, weights, image):
    depthwise, pointwise = weights(3, 3, 32, 1), weights(1, 1, 32, 64)

    def function(x):
        y = tf.nn.depthwise_conv2d(x, depthwise, [1, 1, 1, 1], "SAME")
        return tf.nn.conv2d(y, pointwise, **_SAME)

    result = rewrite(function, [1, 8, 8, 32])
    assert result.blockdnn == {"Conv": 2, "Reorder": 1}
    result.assert_same(image(1, 8, 8, 32))


@pytest.mark.parametrize("channels", [16, 256])
def test_a_larger_kernel_pays_alone(rewrite, weights, channels):
    kernel = weights(3, 3, channels, channels)
    result = rewrite(lambda x: tf.nn.conv2d(x, kernel, **_SAME), [1, 8, 8, channels])
    assert result.blockdnn == {
        "Conv": 1,
        "Reorder": 2 if channels == 16 else 1,
    }  # much: plain store


def test_only_the_losing_part_of_a_function_stays(rewrite, weights, image):
    large, small = weights(3, 3, 32, 32), weights(1, 1, 32, 16)

    def function(x):
        y = tf.nn.relu(tf.nn.conv2d(x, large, **_SAME))
        y = tf.math.bessel_i0e(tf.nn.conv2d(y, large, **_SAME))
        return tf.math.bessel_i0e(tf.nn.conv2d(y, small, **_SAME))

    result = rewrite(function, [1, 8, 8, 32])
    assert result.blockdnn == {"Conv": 2, "Reorder": 2}
    assert "two reorders" in result.reason("Conv2D_2")
    result.assert_same(image(1, 8, 8, 32))


def test_without_reorders_nothing_is_lost(rewrite, weights, image):
    """Few channels are read and written plain."""
    kernel = weights(1, 1, 5, 1)
    result = rewrite(lambda x: tf.nn.conv2d(x, kernel, **_SAME), [None, None, None, 5])
    assert result.blockdnn == {"Conv": 1}
    result.assert_same(image(1, 6, 7, 5))
