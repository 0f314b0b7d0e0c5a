"""Which tensors become blocked, and where reorders end up."""

import pytest
import tensorflow as tf

from tf_blockdnn import Options

_SAME = {"strides": 1, "padding": "SAME"}


def test_one_reorder_in_and_one_out(rewrite, weights, image):
    kernel = weights(3, 3, 32, 32)

    def function(x):
        for _ in range(4):
            x = tf.nn.relu(tf.nn.conv2d(x, kernel, **_SAME))
        return x

    result = rewrite(function, [None, None, None, 32])
    assert result.blockdnn == {"Conv": 4, "Reorder": 2}
    assert [direction for _, direction in result.report.reorders] == [
        "nhwc->nChw16c",
        "nChw16c->nhwc",
    ]
    result.assert_same(image(2, 5, 9, 32))


def test_few_channels_are_read_and_written_plain(rewrite, weights, image):
    first, middle, last = weights(3, 3, 3, 20), weights(3, 3, 20, 20), weights(1, 1, 20, 5)

    def function(x):
        x = tf.nn.relu(tf.nn.conv2d(x, first, **_SAME))
        x = tf.nn.relu(tf.nn.conv2d(x, middle, **_SAME))
        return tf.sigmoid(tf.nn.conv2d(x, last, **_SAME))

    result = rewrite(function, [None, None, None, 3])
    assert result.blockdnn == {"Conv": 3}
    details = [item.details for item in result.report.converted]
    assert "nhwc->nChw16c" in details[0] and "nChw16c->nhwc" in details[2]
    result.assert_same(image(2, 7, 6, 3))


def _then_mean(kernels, x):
    for convolve, kernel in kernels:
        strides = 1 if convolve is tf.nn.conv2d else [1, 1, 1, 1]
        x = tf.nn.relu(convolve(x, kernel, strides, "SAME"))
    return tf.reduce_mean(x, [1, 2])


def test_single_pixels_are_read_plain(rewrite, weights, image):
    """As those of a picture that is made of tokens."""
    kernels = [(tf.nn.conv2d, weights(1, 1, 1024, 32)), (tf.nn.conv2d, weights(3, 3, 32, 32))]
    result = rewrite(
        lambda x: _then_mean(kernels, tf.reshape(x, [-1, 6, 5, 1024])), [None, 30, 1024]
    )
    assert result.blockdnn == {"Conv": 2, "GlobalPool": 1}
    result.assert_same(tf.reshape(image(2, 6, 5, 1024), [2, 30, 1024]))


def test_pixels_are_reordered_for_a_depthwise_convolution_behind(rewrite, weights, image):
    kernels = [
        (tf.nn.conv2d, weights(1, 1, 32, 64)),
        (tf.nn.depthwise_conv2d, weights(3, 3, 64, 1)),
    ]
    result = rewrite(lambda x: _then_mean(kernels, x), [None, 6, 6, 32])
    assert result.blockdnn == {"ConvDepthwise": 1, "GlobalPool": 1, "Reorder": 1}
    result.assert_same(image(2, 6, 6, 32))


def test_pixels_are_reordered_once_for_several_readers(rewrite, weights, image):
    kernels = [weights(size, size, 32, 32) for size in (1, 3)]

    def function(x):
        both = [tf.nn.relu(tf.nn.conv2d(x, kernel, **_SAME)) for kernel in kernels]
        return tf.reduce_mean(both[0] + both[1], [1, 2])

    result = rewrite(function, [None, 6, 6, 32])
    assert result.blockdnn == {"Conv": 2, "GlobalPool": 1, "Reorder": 1}
    result.assert_same(image(2, 6, 6, 32))


def test_a_tensor_is_reordered_once_for_all_plain_readers(rewrite, weights, image):
    kernel = weights(3, 3, 16, 16)

    def function(x):
        y = tf.nn.conv2d(x, kernel, **_SAME)
        return tf.math.bessel_i0e(y), tf.nn.softmax(y), y

    result = rewrite(function, [1, 6, 6, 16])
    assert result.blockdnn == {"Conv": 1, "Reorder": 2, "Softmax": 1}
    result.assert_same(image(1, 6, 6, 16))


def test_work_on_plain_tensors_is_left_alone(rewrite, weights, image):
    kernel = weights(3, 3, 16, 16)

    def function(x):
        x = tf.nn.max_pool2d(tf.nn.relu(tf.concat([x, x + 1.0], 3)), 2, 2, "SAME")
        return tf.nn.conv2d(x[..., :16], kernel, **_SAME)

    result = rewrite(function, [1, 8, 8, 16])
    assert result.blockdnn == {"Conv": 1, "Reorder": 2}
    assert {"MaxPool", "ConcatV2", "Relu"} <= set(result.ops)
    assert "no gain" in result.reason("MaxPool")
    assert "no gain" in result.reason("concat")
    result.assert_same(image(1, 8, 8, 16))


@pytest.mark.parametrize("pool", [tf.nn.max_pool2d, tf.nn.avg_pool2d])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_pools_stay_blocked(rewrite, weights, image, pool, padding):
    kernel = weights(3, 3, 16, 24)
    result = rewrite(
        lambda x: pool(tf.nn.conv2d(x, kernel, **_SAME), [3, 2], [2, 2], padding),
        [None, None, None, 16],
    )
    assert result.blockdnn == {"Conv": 1, "Pool": 1, "Reorder": 2}
    result.assert_same(image(2, 9, 8, 16))


@pytest.mark.parametrize("keepdims", [True, False])
@pytest.mark.parametrize("reduce", [tf.reduce_mean, tf.reduce_max])
def test_global_pools_write_plain(rewrite, weights, image, reduce, keepdims):
    kernel = weights(3, 3, 3, 24)
    result = rewrite(
        lambda x: reduce(tf.nn.conv2d(x, kernel, **_SAME), [1, 2], keepdims=keepdims),
        [None, None, None, 3],
    )
    assert result.blockdnn == {"Conv": 1, "GlobalPool": 1}
    result.assert_same(image(2, 5, 6, 3))


def test_a_mean_over_other_axes_stays(rewrite, weights, image):
    kernel = weights(3, 3, 3, 24)
    result = rewrite(
        lambda x: tf.reduce_mean(tf.nn.conv2d(x, kernel, **_SAME), [1, 3]), [None, 6, 6, 3]
    )
    assert "other axes" in result.reason("Mean")
    result.assert_same(image(2, 6, 6, 3))


@pytest.mark.parametrize("channels", [(16, 32), (20, 7, 33)])
def test_concat_of_blocked_tensors(rewrite, weights, image, channels):
    kernels = [weights(1, 1, 16, c) for c in channels]
    after = weights(3, 3, sum(channels), 16)

    def function(x):
        parts = [tf.nn.conv2d(x, kernel, **_SAME) for kernel in kernels]
        return tf.nn.conv2d(tf.concat(parts, -1), after, **_SAME)

    result = rewrite(function, [None, None, None, 16])
    concat = {} if channels == (16, 32) else {"Concat": 1}  # written in place, or copied
    assert result.blockdnn == {**concat, "Conv": len(channels) + 1, "Reorder": 2}
    result.assert_same(image(2, 5, 5, 16))


def test_concat_with_a_plain_tensor_converts_for_a_convolution(rewrite, weights, image):
    kernel, after = weights(3, 3, 16, 16), weights(3, 3, 32, 16)

    def function(x, skip):
        y = tf.nn.conv2d(x, kernel, **_SAME)
        return tf.nn.conv2d(tf.concat([y, skip], 3), after, **_SAME)

    result = rewrite(function, [1, 6, 6, 16], [1, 6, 6, 16])
    assert result.blockdnn == {"Concat": 1, "Conv": 2, "Reorder": 3}
    result.assert_same(image(1, 6, 6, 16), image(1, 6, 6, 16))


def test_rows_that_nobody_reads_in_blocks_are_joined_plain(rewrite, weights, image):
    kernel = weights(3, 3, 16, 16)

    def function(x):
        y = tf.nn.conv2d(x, kernel, **_SAME)
        return tf.concat([y, y], 1)

    result = rewrite(function, [1, 6, 6, 16])
    assert "nothing after it wants blocks" in result.reason("concat")
    result.assert_same(image(1, 6, 6, 16))


def test_asking_for_a_shape_costs_no_reorder(rewrite, weights, image):
    kernel = weights(3, 3, 3, 20)

    def function(x):
        y = tf.nn.conv2d(x, kernel, 2, "SAME")
        z = tf.nn.conv2d(y, tf.ones([1, 1, 20, 2]), **_SAME)
        return tf.image.resize(z, tf.shape(y)[1:3] * 3), tf.shape(y)

    result = rewrite(function, [None, None, None, 3])
    assert result.blockdnn == {"Conv": 2}
    result.assert_same(image(2, 7, 10, 3))


def test_a_chain_on_a_concat_is_one_pass(rewrite, weights, image):
    """DenseNet: concat, batch norm, relu, convolution."""
    kernel, after = weights(3, 3, 16, 16), weights(1, 1, 32, 16)
    scale, shift = weights(32), weights(32)

    def function(x):
        y = tf.nn.conv2d(x, kernel, **_SAME)
        z = tf.concat([y, tf.nn.conv2d(y, kernel, **_SAME)], 3)
        return tf.nn.conv2d(tf.nn.relu(z * scale + shift), after, **_SAME)

    result = rewrite(function, [1, 6, 6, 16])
    assert result.blockdnn == {"Concat": 1, "Conv": 3, "Eltwise": 1, "Reorder": 1}
    result.assert_same(image(1, 6, 6, 16))


def test_flatten_reads_one_plain_copy(rewrite, weights, image):
    kernel, dense = weights(3, 3, 3, 16), weights(6 * 6 * 16, 4)

    def function(x):
        y = tf.nn.conv2d(x, kernel, **_SAME)
        flat = tf.reshape(y, tf.stack([tf.shape(y)[0], 6 * 6 * 16]))
        return tf.matmul(flat, dense)

    result = rewrite(function, [None, 6, 6, 3])
    assert result.blockdnn == {"Conv": 1, "InnerProduct": 1, "Reorder": 1}
    assert result.ops["Shape"] == 0
    result.assert_same(image(3, 6, 6, 3))


@pytest.mark.parametrize("size, stride", [(1, 1), (3, 2), (4, 4)])
def test_what_is_no_winograd_stores_tokens(rewrite, weights, image, size, stride):
    first, kernel = weights(3, 3, 3, 32), weights(size, size, 32, 48)

    def function(x):
        y = tf.nn.conv2d(tf.nn.relu(tf.nn.conv2d(x, first, **_SAME)), kernel, stride, "SAME")
        return tf.reduce_sum(tf.reshape(y, [-1, (8 // stride) ** 2, 48]), 1)

    result = rewrite(function, [None, 8, 8, 3])
    assert result.blockdnn == {"Conv": 2}
    result.assert_same(image(2, 8, 8, 3))


@pytest.mark.parametrize("size, stride", [(1, 1), (3, 2)])
def test_what_adds_blocks_stores_blocks(rewrite, weights, image, size, stride):
    first, kernel = weights(3, 3, 3, 32), weights(size, size, 32, 32)
    shortcut = weights(2, 2, 3, 32)

    def function(x):
        y = tf.nn.conv2d(tf.nn.relu(tf.nn.conv2d(x, first, **_SAME)), kernel, stride, "SAME")
        short = tf.nn.conv2d(x, first if stride == 1 else shortcut, stride, "SAME")
        return tf.nn.relu(y + tf.nn.max_pool2d(short, 3, 1, "SAME"))

    result = rewrite(function, [None, 8, 8, 3])
    assert result.blockdnn == {"Conv": 3, "Pool": 1, "Reorder": 1}
    result.assert_same(image(2, 8, 8, 3))


@pytest.mark.parametrize("size", [2, 4])
def test_patches_of_tokens_are_read_where_they_lie(rewrite, weights, image, size):
    """SegFormer: attention whose keys are of fewer tokens."""
    kernel = weights(size, size, 32, 32)

    def function(tokens):
        y = tf.nn.conv2d(
            tf.reshape(tf.math.bessel_i0e(tokens), [-1, 8, 8, 32]), kernel, size, "VALID"
        )
        return tf.math.bessel_i0e(tf.reshape(y, [-1, (8 // size) ** 2, 32]))

    result = rewrite(function, [None, 64, 32])
    assert result.blockdnn == {"Conv": 1}
    result.assert_same(tf.reshape(image(2, 8, 8, 32), [2, 64, 32]))


def test_patches_of_much_are_read_in_blocks(rewrite, weights, image):
    kernel = weights(2, 2, 32, 32)
    result = rewrite(lambda x: tf.nn.conv2d(x, kernel, 2, "VALID"), [None, 128, 128, 32])
    assert result.blockdnn == {"Conv": 1, "Reorder": 1}
    result.assert_same(image(1, 128, 128, 32))


@pytest.mark.parametrize("size, channels", [(3, 36), (5, 40)])
def test_what_winograd_computes_is_stored_plain_for_plain_readers(
    rewrite, weights, image, size, channels
):
    """A detector's head. Of a few elements a reorder costs nothing; without Winograd more."""
    first, kernel = weights(3, 3, 16, 32), weights(size, size, 32, channels)

    def head(x, sides):
        y = tf.nn.conv2d(tf.nn.conv2d(x, first, **_SAME), kernel, **_SAME)
        return tf.reshape(tf.nn.bias_add(y, tf.ones(channels)), [1, sides * sides, channels])

    result = rewrite(lambda x: head(x, 16), [1, 16, 16, 16])
    assert result.blockdnn == {"Conv": 2, "Reorder": 1}
    result.assert_same(image(1, 16, 16, 16))
    small = rewrite(lambda x: head(x, 4), [1, 4, 4, 16])
    assert small.blockdnn["Reorder"] == 2
    direct = rewrite(lambda x: head(x, 16), [1, 16, 16, 16], options=Options(algorithm="direct"))
    assert direct.blockdnn["Reorder"] == 2
