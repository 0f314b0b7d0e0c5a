"""Residual additions and what blocks a fusion."""

import numpy as np
import pytest
import tensorflow as tf
from converts import converts

_SAME = {"strides": 1, "padding": "SAME"}


@converts(
    [None, None, None, 16],
    {"Conv": 2, "Reorder": 2},
    post_ops=["eltwise(relu)", "sum();eltwise(relu)"],
)
def test_add_then_relu_is_fused_in_that_order(x, conv):
    y = tf.nn.relu(conv(x, 16))
    return tf.nn.relu(y + conv(y, 16))


def test_activation_then_add_keeps_its_order(rewrite, conv):
    def function(x):
        y = conv(x, 16)
        return y + tf.nn.relu(conv(tf.nn.tanh(y), 16))

    result = rewrite(function, [1, 6, 6, 16])
    assert "eltwise(relu);sum()" in result.post_ops()


def test_two_convolutions_added_fuse_once(rewrite, conv):
    """The deeper branch takes the addition."""

    def function(x):
        x = tf.nn.relu(x)
        deep = conv(conv(x, 24), 24, 1)
        return tf.nn.relu(conv(x, 24, 1) + deep)

    result = rewrite(function, [1, 6, 6, 16])
    assert sorted(result.post_ops()) == ["", "", "sum();eltwise(relu)"]
    fused = next(n for n in result.report.converted if "sum" in n.details)
    assert "24->24" in fused.details


@converts([1, 6, 6, 16], [1, 6, 1, 16], ops={"AddV2": 1}, post_ops=[""])
def test_a_broadcast_add_is_not_a_sum(x, y, conv):
    return tf.nn.relu(conv(x, 16) + y)


def test_sizes_that_may_broadcast_are_not_a_sum(rewrite, conv, image):
    result = rewrite(lambda x, y: conv(x, 16) + y, *[[None, None, None, 16]] * 2)
    assert result.post_ops() == [""]
    result.assert_same(image(2, 6, 6, 16), image(1, 6, 6, 16))


def test_a_gate_per_sample_and_channel(rewrite, weights, conv):
    """Squeeze-excite, with the shapes that Keras computes at run time."""
    kernel = weights(3, 3, 16, 32)

    def function(x):
        y = tf.nn.relu(tf.nn.conv2d(x, kernel, **_SAME))
        s = tf.reduce_mean(y, [1, 2])
        s = tf.reshape(s, tf.stack([tf.shape(s)[0], 1, 1, 32]))
        s = tf.nn.silu(conv(s, 8, 1))
        s = tf.sigmoid(conv(s, 32, 1))
        return tf.nn.conv2d(y * s, kernel[:, :, :1, :] + tf.zeros([3, 3, 32, 32]), **_SAME) + y

    result = rewrite(function, [None, None, None, 16])
    assert result.blockdnn["SqueezeExcite"] == 1
    assert "Eltwise" not in result.blockdnn  # the product is its as well
    assert not {"Mean", "Reshape", "Mul"} & set(result.ops)


@pytest.mark.parametrize("shape", [[1, 36, 32], [1, 3, 12, 32], [36, 32]])
@converts(
    [1, 6, 6, 16],
    some={"Eltwise": 0},
    ops={"Reshape": 1},
    post_ops=["binary(add,channel);eltwise(relu);eltwise(gelu_erf)"],
)
def test_work_behind_a_reshape_of_pixels_is_fused(x, weights, shape, conv):
    """A picture becomes tokens before the bias and the activation."""
    y = tf.reshape(conv(x, 32), shape)
    return tf.nn.gelu(tf.nn.relu(y + weights(32)))


def test_what_a_reshape_moves_channels_for_is_not_fused(rewrite, weights, image, conv):
    """Other channels, another reader, another tensor."""

    def fused(function):
        result = rewrite(function, [1, 6, 6, 16])
        result.assert_same(image(1, 6, 6, 16))
        return [text for text in result.post_ops() if text]

    def convolved(x):
        return conv(x, 32)

    def tokens(x):
        return tf.reshape(convolved(x), [1, 36, 32])

    assert not fused(lambda x: tf.nn.relu(tf.reshape(convolved(x), [1, 72, 16]) + weights(16)))
    assert not fused(lambda x: [tf.nn.relu(y := tf.reshape(convolved(x), [1, 36, 32])), y])
    assert not fused(lambda x: tokens(x) + tf.tile(tf.reshape(x, [1, 36, 16]), [1, 1, 2]))


@converts(
    [1, 6, 6, 16],
    report={"unfused": [("Relu", "what it follows has other readers")]},
    post_ops=[""],
)
def test_a_fetched_result_is_not_passed_over(x, conv):
    y = conv(x, 16)
    return {"before": y, "after": tf.nn.relu(y)}


def test_several_consumers_are_not_passed_over(rewrite, conv):
    def function(x):
        y = conv(x, 16)
        return conv(tf.nn.relu(y), 16) + conv(y, 16)

    result = rewrite(function, [1, 6, 6, 16])
    assert result.blockdnn["Eltwise"] == 1
    assert "eltwise(relu)" not in result.post_ops()
    assert result.report.unfused == [("Relu", "what it follows has other readers")]


def test_control_edges_are_not_passed_over(rewrite, image, conv):
    counter = tf.Variable(0.0)

    def function(x):
        y = conv(x, 16)
        with tf.control_dependencies([y]):
            count = counter.assign_add(1.0)
        with tf.control_dependencies([count]):
            return tf.nn.relu(y)

    result = rewrite(function, [1, 6, 6, 16])
    assert result.post_ops() == [""]
    assert result.report.unfused == [("Relu", "a control edge holds it")]
    assert counter.numpy() == 2.0


def test_subtraction_both_ways(rewrite, conv):
    def function(x):
        y = tf.nn.relu(conv(x, 16))
        z = conv(y, 16)
        return conv(tf.nn.tanh(z - y), 16) - y

    result = rewrite(function, [1, 6, 6, 16])
    assert result.blockdnn == {"Conv": 3, "Reorder": 2}

    def reverse(x):
        y = tf.nn.relu(conv(x, 16))
        return tf.nn.relu(y - conv(y, 16))

    result = rewrite(reverse, [1, 6, 6, 16])
    assert result.blockdnn == {"Conv": 2, "Reorder": 2}


def test_three_addends(rewrite, conv):
    def function(x):
        y = tf.nn.relu(conv(x, 16))
        z = tf.nn.relu(conv(y, 16))
        return tf.add_n([y, conv(z, 16), z])

    result = rewrite(function, [1, 6, 6, 16])
    assert result.blockdnn == {"Conv": 3, "Reorder": 2}
    assert "sum();binary(add,tensor)" in result.post_ops()


@converts(
    [1, 6, 6, 16],
    {"Conv": 2, "Eltwise": 1, "Reorder": 2},
    report={"unfused": [("add", "it reads what it follows twice")]},
)
def test_a_tensor_added_to_itself(x, conv):
    y = conv(x, 16)
    return conv(y + y, 16)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("count", [31, 32, 40, 70])
def test_a_chain_that_is_too_long_is_split(rewrite, bias, count, conv):
    """What does not fit into 32 entries, a bias among them, runs by itself after it."""

    def function(x):
        y = conv(x, 16)
        if bias:
            y = y + np.arange(16, dtype=np.float32) / 16
        for i in range(count):
            y = tf.nn.tanh(y) if i % 2 else tf.nn.softplus(y)
        return conv(y, 16)

    result = rewrite(function, [1, 6, 6, 16])
    ops = -(-(count + bias) // 32)
    assert result.blockdnn.get("Eltwise", 0) == ops - 1
    reasons = [reason for _, reason in result.report.unfused]
    assert reasons == ["the chain of what it follows is full: 32 entries"] * (ops - 1)
    for node, reason in result.report.unfused:
        assert f"  {node}  {reason}" in result.report.summary(all=True)


def test_a_long_chain_after_an_inner_product(rewrite, weights):
    def function(x):
        y = tf.matmul(x, weights(20, 24))
        for i in range(34):
            y = tf.nn.tanh(y) if i % 2 else tf.nn.relu(y)
        return y

    result = rewrite(function, [3, 20])
    assert result.blockdnn == {"InnerProduct": 1}
    assert [reason for _, reason in result.report.unfused] == [
        "the chain of what it follows is full: 32 entries"
    ]


def test_the_same_weights_are_stored_once(rewrite, weights):
    kernel = weights(3, 3, 16, 16)

    result = rewrite(
        lambda x: tf.nn.conv2d(tf.nn.relu(tf.nn.conv2d(x, kernel, **_SAME)), kernel, **_SAME),
        [1, 6, 6, 16],
    )
    (bundle,) = result.trackables
    assert bundle.shape == [3 * 3 * 16 * 16]
    np.testing.assert_array_equal(bundle.numpy(), kernel.numpy().reshape(-1))
