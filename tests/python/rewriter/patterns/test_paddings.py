"""Explicit Pad and dilation folded into convolutions and pools."""

import pytest
import tensorflow as tf


def _pad(x, top, bottom, left, right):
    return tf.pad(x, [[0, 0], [top, bottom], [left, right], [0, 0]])


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("size", [None, 9])
def test_a_zero_pad_is_folded(rewrite, weights, image, stride, size):
    kernel = weights(3, 3, 3, 20)
    result = rewrite(
        lambda x: tf.nn.conv2d(_pad(x, 1, 2, 0, 3), kernel, stride, "VALID"),
        [None, size, size, 3],
    )
    assert result.ops["Pad"] == 0
    assert "pad [1, 2, 0, 3]" in result.report.converted[0].details
    result.assert_same(image(2, 9, 9, 3))


@pytest.mark.parametrize("top, bottom", [(0, 0), (1, 1), (0, 1)])
def test_explicit_padding_of_a_pooling_of_columns_stays(rewrite, weights, image, top, bottom):
    """A pooling of slices along the depth, [N D, H, W, C] -> [N, D, H W, C] -> [N D', H, W, C]."""
    kernel = weights(3, 3, 16, 16)

    def function(x):
        y = tf.reshape(tf.nn.conv2d(x, kernel, 1, "SAME"), [-1, 8, 15, 16])
        pads = [[0, 0], [top, bottom], [0, 0], [0, 0]] if top or bottom else "VALID"
        y = tf.nn.max_pool2d(y, [3, 1], 1, pads)
        return tf.nn.conv2d(tf.reshape(y, [-1, 3, 5, 16]), kernel, 1, "SAME")

    result = rewrite(function, [8, 3, 5, 16])
    assert result.blockdnn["Conv"] == 2
    result.assert_same(image(8, 3, 5, 16))


def test_into_a_depthwise_convolution(rewrite, weights, image):
    first, kernel = weights(3, 3, 3, 32), weights(3, 3, 32, 1)

    def function(x):
        y = _pad(tf.nn.conv2d(x, first, 1, "SAME"), 0, 1, 0, 1)
        return tf.nn.depthwise_conv2d(y, kernel, [1, 2, 2, 1], "VALID")

    result = rewrite(function, [1, 10, 10, 3])
    assert result.ops["Pad"] == 0 and result.blockdnn["Conv"] == 2
    result.assert_same(image(1, 10, 10, 3))


def test_into_same_padding(rewrite, weights, image):
    kernel = weights(3, 3, 16, 16)
    dynamic = rewrite(
        lambda x: tf.nn.conv2d(_pad(x, 1, 1, 1, 1), kernel, 1, "SAME"), [None, None, None, 16]
    )
    assert dynamic.ops["Pad"] == 0
    dynamic.assert_same(image(1, 6, 7, 16))
    static = rewrite(
        lambda x: tf.nn.conv2d(_pad(x, 1, 0, 1, 1), kernel, 2, "SAME"), [None, 7, 8, 16]
    )
    assert static.ops["Pad"] == 0
    static.assert_same(image(1, 7, 8, 16))


def test_same_padding_of_an_unknown_size_with_a_stride_is_not_folded(rewrite, weights, image):
    kernel = weights(3, 3, 16, 16)
    result = rewrite(
        lambda x: tf.nn.conv2d(_pad(x, 1, 0, 1, 0), kernel, 2, "SAME"), [None, None, None, 16]
    )
    assert result.ops["Pad"] == 1
    assert "unknown size" in result.reason("Pad")
    for size in (6, 7):
        result.assert_same(image(1, size, size, 16))


def test_other_pads_are_not_folded(rewrite, weights, image):
    kernel = weights(3, 3, 16, 16)

    def mirrored(x):
        x = tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]], "REFLECT")
        return tf.nn.conv2d(x, kernel, 1, "VALID")

    result = rewrite(mirrored, [1, 6, 6, 16])
    assert "mirrors" in result.reason("MirrorPad")
    result.assert_same(image(1, 6, 6, 16))

    def ones(x):
        x = tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]], constant_values=1.0)
        return tf.nn.conv2d(x, kernel, 1, "VALID")

    result = rewrite(ones, [1, 6, 6, 16])
    assert "another value" in result.reason("PadV2")
    result.assert_same(image(1, 6, 6, 16))

    def channels(x):
        return tf.nn.conv2d(tf.pad(x, [[0, 0], [1, 1], [1, 1], [4, 4]]), kernel, 1, "VALID")

    result = rewrite(channels, [1, 6, 6, 8])
    # Not run: TensorFlow's own fusion of a Pad fails where it pads channels.
    assert "channels" in result.reason("Pad")


_NON_NEGATIVE = {
    "": lambda y: y,
    "averages": lambda y: tf.nn.avg_pool2d(y, 2, 1, "SAME"),
    "resized": lambda y: tf.image.resize(y, [9, 7]),
}


@pytest.mark.parametrize("name", _NON_NEGATIVE)
def test_into_max_pooling_after_a_relu(rewrite, weights, image, name):
    kernel = weights(3, 3, 3, 16)

    def function(x):
        y = _NON_NEGATIVE[name](tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME")))
        return tf.nn.max_pool2d(_pad(y, 1, 1, 1, 1), 3, 2, "VALID")

    result = rewrite(function, [None, None, None, 3])
    assert result.blockdnn["Pool"] == 1 + (name == "averages")
    assert result.ops["Pad"] == 0 and "Pad" not in result.blockdnn
    result.assert_same(image(2, 8, 9, 3))


def test_not_into_max_pooling_of_values_below_zero(rewrite, weights, image):
    kernel = weights(3, 3, 3, 16)

    def function(x):
        y = tf.nn.conv2d(x, kernel, 1, "SAME") - 5.0
        return tf.nn.max_pool2d(_pad(y, 1, 1, 1, 1), 3, 2, "VALID")

    result = rewrite(function, [None, None, None, 3])
    assert result.ops["Pad"] == 1
    result.assert_same(image(2, 8, 9, 3))


def test_not_into_average_pooling(rewrite, weights, image):
    """TensorFlow counts the zeros of a Pad, but not those of SAME."""
    kernel = weights(3, 3, 3, 16)

    def function(x):
        y = tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME"))
        return tf.nn.avg_pool2d(_pad(y, 1, 1, 1, 1), 3, 2, "VALID")

    result = rewrite(function, [1, 8, 8, 3])
    assert result.ops["Pad"] == 1
    result.assert_same(image(1, 8, 8, 3))


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("size", [None, 11])
def test_dilation_through_space_to_batch(rewrite, weights, image, padding, size):
    """tf.nn.convolution, hence Keras, spells dilation as SpaceToBatchND."""
    kernel = weights(3, 3, 16, 16)
    result = rewrite(
        lambda x: tf.nn.convolution(x, kernel, 1, padding, dilations=[2, 3]),
        [None, size, size, 16],
    )
    assert not {"SpaceToBatchND", "BatchToSpaceND"} & set(result.ops)
    assert "dilation 2x3" in result.report.converted[0].details
    for height, width in [(11, 11)] if size else [(11, 11), (12, 9), (13, 10)]:
        result.assert_same(image(1, height, width, 16))


def test_a_shortcut_around_a_dilated_convolution_is_fused(rewrite, weights, image):
    """Both shapes are proven equal, of any size, although one goes through blocks of images."""
    kernel = weights(3, 3, 16, 16)

    def function(x):
        y = tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME"))
        return tf.nn.relu(y + tf.nn.convolution(y, kernel, 1, "SAME", dilations=[2, 2]))

    result = rewrite(function, [None, None, None, 16])
    assert result.blockdnn == {"Conv": 2, "Reorder": 2}
    assert not {"AddV2", "SpaceToBatchND"} & set(result.ops)
    result.assert_same(image(2, 9, 10, 16))


def test_dilated_depthwise(rewrite, weights, image):
    first, kernel = weights(3, 3, 32, 32), weights(3, 3, 32, 1)

    def function(x):
        y = tf.nn.conv2d(x, first, 1, "SAME")
        return tf.nn.depthwise_conv2d(y, kernel, [1, 1, 1, 1], "SAME", dilations=[2, 2])

    result = rewrite(function, [None, None, None, 32])
    assert result.blockdnn == {"Conv": 2, "Reorder": 2}
    assert not {"SpaceToBatchND", "BatchToSpaceND"} & set(result.ops)
    result.assert_same(image(1, 9, 10, 32))


@pytest.mark.parametrize("value, folded", [(-float("inf"), True), (-1.0, False)])
def test_a_maximum_takes_the_pad_of_nothing(rewrite, weights, image, value, folded):
    """ResNet V2: what is padded is below any number."""
    first, last = weights(3, 3, 3, 20), weights(3, 3, 20, 20)

    def function(x):
        y = tf.nn.conv2d(x, first, 1, "SAME")
        y = tf.pad(y, [[0, 0], [1, 1], [1, 0], [0, 0]], constant_values=value)
        return tf.reduce_mean(
            tf.nn.conv2d(tf.nn.max_pool2d(y, 3, 2, "VALID"), last, 1, "SAME"), [1, 2]
        )

    result = rewrite(function, [None, 9, 9, 3])
    assert result.ops["PadV2"] == (0 if folded else 1)  # on blocks
    assert "Reorder" not in result.blockdnn
    assert not any("Pad" in name for name, _ in result.report.declined)
    result.assert_same(image(2, 9, 9, 3))
