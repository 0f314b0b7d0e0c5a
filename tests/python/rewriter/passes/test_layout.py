"""Which tensors become blocked, and where reorders end up."""

import pytest
import tensorflow as tf
from converts import converts

from tf_blockdnn import Options
from tf_blockdnn.python.rewriter.passes.layout import assign_layout
from tf_blockdnn.python.rewriter.patterns import patterns_of

_SAME = {"strides": 1, "padding": "SAME"}


def test_one_reorder_in_and_one_out(rewrite, conv):
    def function(x):
        for _ in range(4):
            x = tf.nn.relu(conv(x, 32))
        return x

    result = rewrite(function, [None, None, None, 32])
    assert result.blockdnn == {"Conv": 4, "Reorder": 2}
    assert [direction for _, direction in result.report.reorders] == [
        "nhwc->nChw16c",
        "nChw16c->nhwc",
    ]


def test_few_channels_are_read_and_written_plain(rewrite, conv):
    def function(x):
        x = tf.nn.relu(conv(x, 20))
        x = tf.nn.relu(conv(x, 20))
        return tf.sigmoid(conv(x, 5, 1))

    result = rewrite(function, [None, None, None, 3])
    assert result.blockdnn == {"Conv": 3}
    details = [item.details for item in result.report.converted]
    assert "nhwc->nChw16c" in details[0] and "nChw16c->nhwc" in details[2]


def _then_mean(kernels, x):
    for convolve, kernel in kernels:
        strides = 1 if convolve is tf.nn.conv2d else [1, 1, 1, 1]
        x = tf.nn.relu(convolve(x, kernel, strides, "SAME"))
    return tf.reduce_mean(x, [1, 2])


@converts([None, 30, 1024], {"Conv": 2, "GlobalPool": 1})
def test_single_pixels_are_read_plain(x, weights):
    """As those of a picture that is made of tokens."""
    kernels = [(tf.nn.conv2d, weights(1, 1, 1024, 32)), (tf.nn.conv2d, weights(3, 3, 32, 32))]
    return _then_mean(kernels, tf.reshape(x, [-1, 6, 5, 1024]))


@converts([None, 6, 6, 32], {"ConvDepthwise": 1, "GlobalPool": 1, "Reorder": 1})
def test_pixels_are_reordered_for_a_depthwise_convolution_behind(x, weights):
    kernels = [
        (tf.nn.conv2d, weights(1, 1, 32, 64)),
        (tf.nn.depthwise_conv2d, weights(3, 3, 64, 1)),
    ]
    return _then_mean(kernels, x)


@converts([None, 6, 6, 32], {"Conv": 2, "GlobalPool": 1, "Reorder": 1})
def test_pixels_are_reordered_once_for_several_readers(x, weights):
    kernels = [weights(size, size, 32, 32) for size in (1, 3)]
    both = [tf.nn.relu(tf.nn.conv2d(x, kernel, **_SAME)) for kernel in kernels]
    return tf.reduce_mean(both[0] + both[1], [1, 2])


@converts([1, 6, 6, 16], {"Conv": 1, "Reorder": 2, "Softmax": 1})
def test_a_tensor_is_reordered_once_for_all_plain_readers(x, conv):
    y = conv(x, 16)
    return tf.math.bessel_i0e(y), tf.nn.softmax(y), y


def test_work_on_plain_tensors_is_left_alone(rewrite, conv):
    def function(x):
        x = tf.nn.max_pool2d(tf.nn.relu(tf.concat([x, x + 1.0], 3)), 2, 2, "SAME")
        return conv(x[..., :16], 16)

    result = rewrite(function, [1, 8, 8, 16])
    assert result.blockdnn == {"Conv": 1, "Reorder": 2}
    assert {"MaxPool", "ConcatV2", "Relu"} <= set(result.ops)
    assert "no gain" in result.reason("MaxPool")
    assert "no gain" in result.reason("concat")


@pytest.mark.parametrize("pool", [tf.nn.max_pool2d, tf.nn.avg_pool2d])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@converts([None, None, None, 16], {"Conv": 1, "Pool": 1, "Reorder": 2})
def test_pools_stay_blocked(x, pool, padding, conv):
    return pool(conv(x, 24), [3, 2], [2, 2], padding)


@pytest.mark.parametrize("keepdims", [True, False])
@pytest.mark.parametrize("reduce", [tf.reduce_mean, tf.reduce_max])
@converts([None, None, None, 3], {"Conv": 1, "GlobalPool": 1})
def test_global_pools_write_plain(x, reduce, keepdims, conv):
    return reduce(conv(x, 24), [1, 2], keepdims=keepdims)


@converts([None, 6, 6, 3], reason=("Mean", "other axes"))
def test_a_mean_over_other_axes_stays(x, conv):
    return tf.reduce_mean(conv(x, 24), [1, 3])


@pytest.mark.parametrize("channels", [(16, 32), (20, 7, 33)])
def test_concat_of_blocked_tensors(rewrite, weights, channels):
    kernels = [weights(1, 1, 16, c) for c in channels]

    def function(x):
        parts = [tf.nn.conv2d(x, kernel, **_SAME) for kernel in kernels]
        return tf.nn.conv2d(tf.concat(parts, -1), weights(3, 3, sum(channels), 16), **_SAME)

    result = rewrite(function, [None, None, None, 16])
    concat = {} if channels == (16, 32) else {"Concat": 1}  # written in place, or copied
    assert result.blockdnn == {**concat, "Conv": len(channels) + 1, "Reorder": 2}


@converts([1, 6, 6, 16], [1, 6, 6, 16], {"Concat": 1, "Conv": 2, "Reorder": 3})
def test_concat_with_a_plain_tensor_converts_for_a_convolution(x, skip, conv):
    y = conv(x, 16)
    return conv(tf.concat([y, skip], 3), 16)


@converts([1, 6, 6, 16], reason=("concat", "nothing after it wants blocks"))
def test_rows_that_nobody_reads_in_blocks_are_joined_plain(x, conv):
    y = conv(x, 16)
    return tf.concat([y, y], 1)


@converts([None, None, None, 3], {"Conv": 2})
def test_asking_for_a_shape_costs_no_reorder(x, conv):
    y = conv(x, 20, 3, 2)
    z = tf.nn.conv2d(y, tf.ones([1, 1, 20, 2]), **_SAME)
    return tf.image.resize(z, tf.shape(y)[1:3] * 3), tf.shape(y)


@converts([1, 6, 6, 16], {"Concat": 1, "Conv": 3, "Eltwise": 1, "Reorder": 1})
def test_a_chain_on_a_concat_is_one_pass(x, weights, conv):
    """DenseNet: concat, batch norm, relu, convolution."""
    y = conv(x, 16)
    z = tf.concat([y, conv(y, 16)], 3)
    return conv(tf.nn.relu(z * weights(32) + weights(32)), 16, 1)


@converts([None, 6, 6, 3], {"Conv": 1, "InnerProduct": 1, "Reorder": 1}, ops={"Shape": 0})
def test_flatten_reads_one_plain_copy(x, weights, conv):
    y = conv(x, 16)
    flat = tf.reshape(y, tf.stack([tf.shape(y)[0], 6 * 6 * 16]))
    return tf.matmul(flat, weights(6 * 6 * 16, 4))


@pytest.mark.parametrize("size, stride", [(1, 1), (3, 2), (4, 4)])
@converts([None, 8, 8, 3], {"Conv": 2})
def test_what_is_no_winograd_stores_tokens(x, weights, size, stride, conv):
    y = tf.nn.conv2d(tf.nn.relu(conv(x, 32)), weights(size, size, 32, 48), stride, "SAME")
    return tf.reduce_sum(tf.reshape(y, [-1, (8 // stride) ** 2, 48]), 1)


@pytest.mark.parametrize("size, stride", [(1, 1), (3, 2)])
@converts([None, 8, 8, 3], {"Conv": 3, "Pool": 1, "Reorder": 1})
def test_what_adds_blocks_stores_blocks(x, weights, size, stride):
    first = weights(3, 3, 3, 32)
    y = tf.nn.conv2d(
        tf.nn.relu(tf.nn.conv2d(x, first, **_SAME)), weights(size, size, 32, 32), stride, "SAME"
    )
    short = tf.nn.conv2d(x, first if stride == 1 else weights(2, 2, 3, 32), stride, "SAME")
    return tf.nn.relu(y + tf.nn.max_pool2d(short, 3, 1, "SAME"))


@converts([None, 8, 8, 3], {"Conv": 2})
def test_what_is_only_cut_is_stored_plain(x, weights, conv):
    """As queries, keys and values."""
    x = tf.nn.conv2d(conv(x, 32), weights(1, 1, 32, 96), 1, "VALID")
    return [tf.reshape(part, [-1, 64, 2, 16]) for part in tf.split(x, 3, -1)]


@converts([None, 8, 8, 32], {"Conv": 1})
def test_single_pixels_are_read_and_stored_plain(x, weights):
    return tf.reshape(tf.nn.conv2d(x, weights(1, 1, 32, 96), 1, "VALID"), [-1, 64, 96])


@pytest.mark.parametrize("size", [2, 4])
@converts([None, 64, 32], {"Conv": 1})
def test_patches_of_tokens_are_read_where_they_lie(tokens, weights, size):
    """SegFormer: attention whose keys are of fewer tokens."""
    y = tf.nn.conv2d(
        tf.reshape(tf.math.bessel_i0e(tokens), [-1, 8, 8, 32]),
        weights(size, size, 32, 32),
        size,
        "VALID",
    )
    return tf.math.bessel_i0e(tf.reshape(y, [-1, (8 // size) ** 2, 32]))


@converts([None, 128, 128, 32], {"Conv": 1, "Reorder": 1})
def test_patches_of_much_are_read_in_blocks(x, conv):
    return conv(x, 32, 2, 2, "VALID")


@pytest.mark.parametrize("size, channels", [(3, 36), (5, 40)])
def test_what_winograd_computes_is_stored_plain_for_plain_readers(
    rewrite, weights, size, channels, conv
):
    """A detector's head. Of a few elements a reorder costs nothing; without Winograd more."""

    def head(x, sides):
        y = tf.nn.conv2d(conv(x, 32), weights(size, size, 32, channels), **_SAME)
        return tf.reshape(tf.nn.bias_add(y, tf.ones(channels)), [1, sides * sides, channels])

    result = rewrite(lambda x: head(x, 16), [1, 16, 16, 16])
    assert result.blockdnn == {"Conv": 2, "Reorder": 1}
    small = rewrite(lambda x: head(x, 4), [1, 4, 4, 16])
    assert small.blockdnn["Reorder"] == 2
    direct = rewrite(lambda x: head(x, 16), [1, 16, 16, 16], options=Options(algorithm="direct"))
    assert direct.blockdnn["Reorder"] == 2


@pytest.mark.parametrize("convolves", [False, True])
def test_only_what_blocks_reach_is_looked_at(rewrite, conv, weights, monkeypatch, convolves):
    """Bodies without convolutions are large: transformers, loops, slices and products."""
    looked, look = [], assign_layout.look

    def count(pattern, node, *rest):
        looked.append(node.name)
        return look(pattern, node, *rest)

    def network(x):
        y = tf.concat([x[:, :4], x[:, 4:]], 1, name="before")
        return conv(y, 32) if convolves else tf.matmul(tf.reshape(y, [-1, 32]), weights(32, 32))

    monkeypatch.setattr(assign_layout, "look", count)
    result = rewrite(network, [1, 8, 8, 32])
    assert result.blockdnn["Conv" if convolves else "InnerProduct"] == 1
    # Once for what the convolution may want to read in blocks, and not again for what is plain.
    once = sum(len(patterns_of(run, "ConcatV2")) for run in ("spans", "assign_layout"))
    assert looked.count("before") == (once if convolves else 0)
