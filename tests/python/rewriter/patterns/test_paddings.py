"""Explicit Pad and dilation folded into convolutions and pools."""

import pytest
import tensorflow as tf
from converts import converts


def _pad(x, top, bottom, left, right):
    return tf.pad(x, [[0, 0], [top, bottom], [left, right], [0, 0]])


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("size", [None, 9])
def test_a_zero_pad_is_folded(rewrite, weights, image, stride, size):
    result = rewrite(
        lambda x: tf.nn.conv2d(_pad(x, 1, 2, 0, 3), weights(3, 3, 3, 20), stride, "VALID"),
        [None, size, size, 3],
    )
    assert result.ops["Pad"] == 0
    assert "pad [1, 2, 0, 3]" in result.report.converted[0].details
    result.assert_same(image(2, 9, 9, 3))


@pytest.mark.parametrize("top, bottom", [(0, 0), (1, 1), (0, 1)])
@converts([8, 3, 5, 16], some={"Conv": 2})
def test_explicit_padding_of_a_pooling_of_columns_stays(x, top, bottom, conv):
    """A pooling of slices along the depth, [N D, H, W, C] -> [N, D, H W, C] -> [N D', H, W, C]."""
    y = tf.reshape(conv(x, 16), [-1, 8, 15, 16])
    pads = [[0, 0], [top, bottom], [0, 0], [0, 0]] if top or bottom else "VALID"
    y = tf.nn.max_pool2d(y, [3, 1], 1, pads)
    return conv(tf.reshape(y, [-1, 3, 5, 16]), 16)


@converts([1, 10, 10, 3], some={"Conv": 2}, ops={"Pad": 0})
def test_into_a_depthwise_convolution(x, weights, conv):
    y = _pad(conv(x, 32), 0, 1, 0, 1)
    return tf.nn.depthwise_conv2d(y, weights(3, 3, 32, 1), [1, 2, 2, 1], "VALID")


def test_into_same_padding(rewrite, image, conv):
    dynamic = rewrite(lambda x: conv(_pad(x, 1, 1, 1, 1), 16), [None, None, None, 16])
    assert dynamic.ops["Pad"] == 0
    dynamic.assert_same(image(1, 6, 7, 16))
    static = rewrite(lambda x: conv(_pad(x, 1, 0, 1, 1), 16, 3, 2), [None, 7, 8, 16])
    assert static.ops["Pad"] == 0
    static.assert_same(image(1, 7, 8, 16))


def test_same_padding_of_an_unknown_size_with_a_stride_is_not_folded(rewrite, image, conv):
    result = rewrite(lambda x: conv(_pad(x, 1, 0, 1, 0), 16, 3, 2), [None, None, None, 16])
    assert result.ops["Pad"] == 1
    assert "unknown size" in result.reason("Pad")
    for size in (6, 7):
        result.assert_same(image(1, size, size, 16))


@pytest.mark.parametrize(
    "channels, options, op, reason",
    [
        (0, {"mode": "REFLECT"}, "MirrorPad", "mirrors"),
        (0, {"constant_values": 1.0}, "PadV2", "another value"),
        (4, {}, "Pad", "channels"),
    ],
)
def test_other_pads_are_not_folded(rewrite, conv, channels, options, op, reason):
    pads = [[0, 0], [1, 1], [1, 1], [channels, channels]]
    # TensorFlow's own fusion of a Pad fails where it pads channels.
    tolerance = None if channels else 1e-5
    padded = lambda x: tf.pad(x, pads, **options)  # noqa: E731
    function = lambda x: conv(padded(x), 16, 3, 1, "VALID")  # noqa: E731
    assert reason in rewrite(function, [1, 6, 6, 8], tolerance=tolerance).reason(op)


_NON_NEGATIVE = {
    "": lambda y: y,
    "averages": lambda y: tf.nn.avg_pool2d(y, 2, 1, "SAME"),
    "resized": lambda y: tf.image.resize(y, [9, 7]),
}


@pytest.mark.parametrize("name", _NON_NEGATIVE)
def test_into_max_pooling_after_a_relu(rewrite, name, conv):
    def function(x):
        y = _NON_NEGATIVE[name](tf.nn.relu(conv(x, 16)))
        return tf.nn.max_pool2d(_pad(y, 1, 1, 1, 1), 3, 2, "VALID")

    result = rewrite(function, [None, None, None, 3])
    assert result.blockdnn["Pool"] == 1 + (name == "averages")
    assert result.ops["Pad"] == 0 and "Pad" not in result.blockdnn


@converts([None, None, None, 3], ops={"Pad": 1})
def test_not_into_max_pooling_of_values_below_zero(x, conv):
    y = conv(x, 16) - 5.0
    return tf.nn.max_pool2d(_pad(y, 1, 1, 1, 1), 3, 2, "VALID")


@converts([1, 8, 8, 3], ops={"Pad": 1})
def test_not_into_average_pooling(x, conv):
    """TensorFlow counts the zeros of a Pad, but not those of SAME."""
    y = tf.nn.relu(conv(x, 16))
    return tf.nn.avg_pool2d(_pad(y, 1, 1, 1, 1), 3, 2, "VALID")


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("size", [None, 11])
def test_dilation_through_space_to_batch(rewrite, weights, image, padding, size):
    """tf.nn.convolution, hence Keras, spells dilation as SpaceToBatchND."""
    result = rewrite(
        lambda x: tf.nn.convolution(x, weights(3, 3, 16, 16), 1, padding, dilations=[2, 3]),
        [None, size, size, 16],
        tolerance=None,
    )
    assert not {"SpaceToBatchND", "BatchToSpaceND"} & set(result.ops)
    assert "dilation 2x3" in result.report.converted[0].details
    for height, width in [(11, 11)] if size else [(11, 11), (12, 9), (13, 10)]:
        result.assert_same(image(1, height, width, 16))


@converts([None, None, None, 16], {"Conv": 2, "Reorder": 2}, ops={"AddV2": 0, "SpaceToBatchND": 0})
def test_a_shortcut_around_a_dilated_convolution_is_fused(x, weights):
    """Both shapes are proven equal, of any size, although one goes through blocks of images."""
    kernel = weights(3, 3, 16, 16)
    y = tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME"))
    return tf.nn.relu(y + tf.nn.convolution(y, kernel, 1, "SAME", dilations=[2, 2]))


@converts(
    [None, None, None, 32],
    {"Conv": 2, "Reorder": 2},
    ops={"BatchToSpaceND": 0, "SpaceToBatchND": 0},
)
def test_dilated_depthwise(x, weights, conv):
    y = conv(x, 32)
    return tf.nn.depthwise_conv2d(y, weights(3, 3, 32, 1), [1, 1, 1, 1], "SAME", dilations=[2, 2])


@pytest.mark.parametrize("value, folded", [(-float("inf"), True), (-1.0, False)])
def test_a_maximum_takes_the_pad_of_nothing(rewrite, value, folded, conv):
    """ResNet V2: what is padded is below any number."""

    def function(x):
        y = conv(x, 20)
        y = tf.pad(y, [[0, 0], [1, 1], [1, 0], [0, 0]], constant_values=value)
        return tf.reduce_mean(conv(tf.nn.max_pool2d(y, 3, 2, "VALID"), 20), [1, 2])

    result = rewrite(function, [None, 9, 9, 3])
    assert result.ops["PadV2"] == (0 if folded else 1)  # on blocks
    assert "Reorder" not in result.blockdnn
    assert not any("Pad" in name for name, _ in result.report.declined)
