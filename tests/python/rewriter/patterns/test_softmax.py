"""Softmax behind converted ops."""

import pytest
import tensorflow as tf
from converts import converts


def test_behind_a_classifier(rewrite, weights):
    result = rewrite(
        lambda x: tf.nn.softmax(tf.matmul(x, weights(40, 24)) + weights(24)), [None, 40]
    )
    assert result.blockdnn == {"InnerProduct": 1, "Softmax": 1}
    assert "Softmax" not in result.ops and result.report.declined == []
    assert result.report.converted[-1].details == "24 channels"


@converts([None, 8, 8, 32], some={"Softmax": 1})
def test_behind_a_reshape(x, conv):
    def classify(x):
        y = conv(tf.reduce_mean(x, [1, 2], keepdims=True), 20, 1)
        return tf.nn.softmax(tf.reshape(y, [-1, 20]))

    return classify(conv(x, 32))


@converts([None, 8, 8, 32], some={"Softmax": 1}, ops={"Softmax": 0})
def test_behind_a_global_pool(x, conv):
    return tf.nn.softmax(tf.reduce_mean(conv(x, 20), [1, 2]))


@pytest.mark.parametrize("channels", [3, 21])
@converts([None, 8, 8, 32], some={"Softmax": 1}, report={"declined": []})
def test_of_every_pixel(x, weights, channels):
    """What a convolution writes in blocks is read from a plain copy."""
    return tf.nn.softmax(tf.nn.conv2d(x, weights(3, 3, 32, channels), 1, "SAME"))


@converts([None, 40], {"InnerProduct": 1, "Softmax": 1})
def test_both_the_logits_and_their_softmax(x, weights):
    y = tf.matmul(x, weights(40, 24))
    return y, tf.nn.softmax(y)


@converts([None, 40], {"InnerProduct": 2, "Softmax": 1})
def test_an_inner_product_reads_it(x, weights):
    return tf.nn.relu(tf.matmul(tf.nn.softmax(tf.matmul(x, weights(40, 24))), weights(24, 16)))


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
