"""What is computed of rows, columns and pixels of a picture, and spread over it again."""

import pytest
import tensorflow as tf
from converts import converts

_SAME = {"strides": 1, "padding": "SAME"}


@pytest.fixture
def between(weights):
    """between(middle) -> a function: 3x3, middle(x), 3x3, the mean of all pixels."""
    first, last = weights(3, 3, 3, 36), weights(3, 3, 36, 36)

    def make(middle):
        def function(x):
            x = middle(tf.nn.conv2d(x, first, **_SAME))
            return tf.reduce_mean(tf.nn.conv2d(x, last, **_SAME), [1, 2])

        return function

    return make


_SPREADS = {
    "product": lambda x, s: x * tf.sigmoid(s),
    "sum": lambda x, s: tf.sigmoid(s) + x,
    "difference": lambda x, s: x - tf.sigmoid(s),
    "difference from": lambda x, s: tf.sigmoid(s) - x,
    "maximum": lambda x, s: tf.maximum(x, tf.sigmoid(s)),
    "quotient": lambda x, s: x / tf.sigmoid(s),
    "quotient by": lambda x, s: tf.sigmoid(s) / (1.0 + tf.sigmoid(x)),
}


@pytest.mark.parametrize("axis", [1, 2, 3])
@pytest.mark.parametrize("reduce", [tf.reduce_mean, tf.reduce_max], ids=["mean", "max"])
@pytest.mark.parametrize("spread", _SPREADS.values(), ids=_SPREADS)
def test_what_a_line_or_a_pixel_gives_is_spread_over_it(
    rewrite, image, between, spread, reduce, axis
):
    middle = lambda x: spread(x, reduce(x, axis, keepdims=True))  # noqa: E731
    result = rewrite(between(middle), [None, 6, 7, 3])
    assert not {"AddV2", "Maximum", "Mean", "Mul", "Sub"} & set(result.ops), result.ops
    assert "Reorder" not in result.blockdnn
    result.assert_same(image(2, 6, 7, 3) - 0.5)


@converts([None, 6, 7, 3], ops={"Sum": 1})
def test_sums_of_channels_stay(x, between):
    return between(lambda x: x * tf.reduce_sum(x, 3, keepdims=True))(x)


def test_sizes_that_may_differ_are_named(rewrite, image, conv):
    """TensorFlow spreads a picture of one pixel over the other, if it is one."""

    def function(x, y):
        x, y = (conv(z, 32) for z in (x, y))
        return tf.math.bessel_i0e(x + y)

    result = rewrite(function, [2, None, None, 3], [2, None, None, 3])
    assert "not proven to be of one size" in result.reason("add")
    result.assert_same(image(2, 6, 7, 3), image(2, 6, 7, 3))
    result.assert_same(image(2, 6, 7, 3), image(2, 1, 1, 3))


@converts([None, 6, 7, 3], ops={"Mul": 1})
def test_planes_that_are_no_batch_of_their_own_stay(x, between):
    """[1, H, W, 1] is spread over the batch, too."""
    middle = lambda x: x * tf.reduce_mean(x, 3, keepdims=True)[:1]  # noqa: E731
    return between(middle)(x)


@converts([None, 6, 7, 3], some={"Reorder": 0}, ops={"Split": 0, "SplitV": 0})
def test_rows_are_joined_and_cut_in_blocks(x, between):
    def middle(x):
        pair = tf.concat([x, tf.nn.relu(x)], 1)
        above, below = tf.split(pair, [5, 7], 1)
        left, right = tf.split(tf.concat([above, below, x], 1), [3, 4], 2)
        return tf.concat([right, left], 2)[:, 2:8]

    return between(middle)(x)


@pytest.mark.parametrize("turn", [True, False])
@converts([None, 6, 7, 3], some={"Reorder": 0}, ops={"Transpose": 0})
def test_pixels_that_keep_their_order_are_as_they_lie(x, between, turn):
    def middle(x):
        line = tf.nn.relu(tf.reshape(x, [-1, 1, 42, 36]))
        line = tf.transpose(line, [0, 2, 1, 3]) if turn else line
        return tf.reshape(line, [-1, 7, 6, 36])

    return between(middle)(x)


@converts([None, 6, 7, 3], ops={"Transpose": 1})
def test_pixels_in_another_order_are_moved_by_tensorflow(x, between):
    middle = lambda x: tf.transpose(x, [0, 2, 1, 3])  # noqa: E731
    return between(middle)(x)
