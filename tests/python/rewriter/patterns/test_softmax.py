"""Softmax behind converted ops."""

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd


def test_behind_a_classifier(rewrite, weights, image):
    kernel, bias = weights(40, 24), weights(24)
    result = rewrite(lambda x: tf.nn.softmax(tf.matmul(x, kernel) + bias), [None, 40])
    assert result.blockdnn == {"InnerProduct": 1, "Softmax": 1}
    assert "Softmax" not in result.ops and result.report.declined == []
    assert result.report.converted[-1].details == "24 channels"
    result.assert_same(image(5, 40))


def test_behind_a_reshape(rewrite, weights, image):
    kernel = weights(1, 1, 32, 20)

    def classify(x):
        y = tf.nn.conv2d(tf.reduce_mean(x, [1, 2], keepdims=True), kernel, 1, "SAME")
        return tf.nn.softmax(tf.reshape(y, [-1, 20]))

    first = weights(3, 3, 32, 32)
    result = rewrite(lambda x: classify(tf.nn.conv2d(x, first, 1, "SAME")), [None, 8, 8, 32])
    assert result.blockdnn["Softmax"] == 1
    result.assert_same(image(3, 8, 8, 32))


def test_behind_a_global_pool(rewrite, weights, image):
    kernel = weights(3, 3, 32, 20)

    def classify(x):
        return tf.nn.softmax(tf.reduce_mean(tf.nn.conv2d(x, kernel, 1, "SAME"), [1, 2]))

    result = rewrite(classify, [None, 8, 8, 32])
    assert result.blockdnn["Softmax"] == 1 and "Softmax" not in result.ops
    result.assert_same(image(3, 8, 8, 32))


@pytest.mark.parametrize("channels", [3, 21])
def test_of_every_pixel(rewrite, weights, image, channels):
    """What a convolution writes in blocks is read from a plain copy."""
    kernel = weights(3, 3, 32, channels)
    result = rewrite(lambda x: tf.nn.softmax(tf.nn.conv2d(x, kernel, 1, "SAME")), [None, 8, 8, 32])
    assert result.blockdnn["Softmax"] == 1 and result.report.declined == []
    result.assert_same(image(2, 8, 8, 32))


def test_both_the_logits_and_their_softmax(rewrite, weights, image):
    kernel = weights(40, 24)

    def function(x):
        y = tf.matmul(x, kernel)
        return y, tf.nn.softmax(y)

    result = rewrite(function, [None, 40])
    assert result.blockdnn == {"InnerProduct": 1, "Softmax": 1}
    result.assert_same(image(5, 40))


def test_an_inner_product_reads_it(rewrite, weights, image):
    first, second = weights(40, 24), weights(24, 16)
    result = rewrite(
        lambda x: tf.nn.relu(tf.matmul(tf.nn.softmax(tf.matmul(x, first)), second)), [None, 40]
    )
    assert result.blockdnn == {"InnerProduct": 2, "Softmax": 1}
    result.assert_same(image(5, 40))


def test_what_stays_with_tensorflow(rewrite, weights, image):
    alone = rewrite(lambda x: tf.nn.softmax(tf.tanh(x)), [None, 40])
    assert "nothing converted" in alone.reason("Softmax")
    alone.assert_same(image(3, 40))
    kernel = weights(40, 24)
    double = rewrite(lambda x: tf.nn.softmax(tf.cast(x @ kernel, tf.float64)), [None, 40])
    assert "float64" in double.reason("Softmax")
    double.assert_same(image(3, 40))
    other_axis = rewrite(lambda x: tf.nn.softmax(x @ kernel, axis=0), [None, 40])
    other_axis.assert_same(image(3, 40))


def test_calls_that_repeat(weights, image):
    kernel, bias = weights(40, 24), weights(24)
    spec = [tf.TensorSpec([None, 40])]
    function = tf.function(lambda x: tf.nn.softmax(x @ kernel + bias), input_signature=spec)
    fast = bd.optimize(function)
    x = image(3, 40)
    for call in range(6):
        np.testing.assert_allclose(fast(x + call), function(x + call), rtol=1e-5)
