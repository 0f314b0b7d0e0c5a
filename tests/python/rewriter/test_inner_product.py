"""Dense layers: MatMul by constant weights with bias and activation."""

import numpy as np
import tensorflow as tf


def test_bias_and_activation_are_fused(rewrite, weights, image):
    kernel, bias = weights(40, 24), weights(24)
    result = rewrite(lambda x: tf.nn.relu(tf.matmul(x, kernel) + bias), [None, 40])
    assert result.blockdnn == {"InnerProduct": 1}
    (text,) = result.post_ops("BlockdnnInnerProduct")
    assert text == "binary(add,channel);eltwise(relu)"
    result.assert_same(image(5, 40))


def test_weights_stay_in_their_variable(rewrite, weights):
    kernel = weights(40, 24)
    result = rewrite(lambda x: tf.matmul(x, kernel), [None, 40])
    assert any(item is kernel for item in result.trackables)
    assert sum(item.shape.num_elements() for item in result.trackables) == 40 * 24


def test_a_row_added_to_each_sample_is_no_bias(rewrite, weights, image):
    """[1, C] and [N, 1] broadcast differently."""
    kernel = weights(40, 24)
    column = tf.Variable(np.arange(3, dtype=np.float32)[:, None])
    result = rewrite(lambda x: tf.matmul(x, kernel) + column, [3, 40])
    assert result.post_ops("BlockdnnInnerProduct") == [""]
    result.assert_same(image(3, 40))


def test_what_stays_with_tensorflow(rewrite, weights, image):
    kernel = weights(24, 40)
    transposed = rewrite(lambda x: tf.matmul(x, kernel, transpose_b=True), [None, 40])
    assert "transposed" in transposed.reason("MatMul")
    transposed.assert_same(image(3, 40))
    computed = rewrite(lambda x: tf.matmul(x, x + 1.0), [4, 4])
    assert "computed" in computed.reason("MatMul")
    double = tf.Variable(tf.ones([4, 4], tf.float64))
    result = rewrite(lambda x: tf.matmul(x, double), tf.TensorSpec([4, 4], tf.float64))
    assert "double" in result.reason("MatMul")
