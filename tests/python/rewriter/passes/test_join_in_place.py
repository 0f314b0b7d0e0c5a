"""Producers write into the concatenation of their results."""

import numpy as np
import pytest
import tensorflow as tf
from converts import converts
from graph_nodes import all_nodes
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_graphs import Builder

from tf_blockdnn.python.rewriter import optimize_concrete
from tf_blockdnn.python.rewriter.passes import order

_SAME = dict(strides=1, padding="SAME")


def nodes(result, op=""):
    return [n for n in all_nodes(result.concrete) if n.op.startswith(f"Blockdnn{op}")]


def parts(result):
    """The dst_part of each op that has one."""
    lists = (list(n.attr["dst_part"].list.i) for n in nodes(result))
    return sorted(tuple(part) for part in lists if part)


def assert_as_copied(result, x):
    """The same bits as from the graph that copies, also where the caller's graph is another."""
    with pytest.MonkeyPatch.context() as patch:
        passes = [run for run in order.PASSES if run.__name__ != "join_in_place"]
        patch.setattr(order, "PASSES", tuple(passes))
        copying = optimize_concrete(result.original).concrete
    wanted = tf.nest.flatten(copying(x))
    for call in (result.concrete, tf.function(result.concrete)):
        for old, new in zip(wanted, tf.nest.flatten(call(x)), strict=True):
            np.testing.assert_array_equal(old, new)


def branches(weights, *, channels=(32, 48, 16), ic=16):
    """An Inception block: convolutions and a pooling, joined, then read by a convolution."""
    filters = [weights(3, 3, ic, c) for c in channels]
    last = weights(1, 1, sum(channels) + ic, 32)

    def function(x):
        x = tf.nn.relu(tf.nn.conv2d(x, weights.variables_made[0], **_SAME))
        values = [tf.nn.relu(tf.nn.conv2d(x, w, **_SAME)) for w in filters]
        values.append(tf.nn.avg_pool2d(x, 3, 1, "SAME"))
        return tf.nn.conv2d(tf.concat(values, 3), last, **_SAME)

    return function


@pytest.fixture
def inception(weights):
    weights(1, 1, 16, 16)
    return branches(weights)


def test_branches_write_in_place(inception, rewrite, image):
    result = rewrite(inception, [None, 9, 8, 16])
    assert result.blockdnn == {"Conv": 5, "Pool": 1}
    assert parts(result) == [(0, 112), (32, 112), (80, 112), (96, 112)]
    assert sorted(n.attr["num_into"].i for n in nodes(result) if n.attr["dst_part"].list.i) == [
        0,
        1,
        1,
        1,
    ]
    for batch in (1, 3):
        x = image(batch, 9, 8, 16)
        result.assert_same(x)
        assert_as_copied(result, x)


def test_the_report_says_so(inception, rewrite):
    report = rewrite(inception, [1, 9, 8, 16]).report
    ((_, count),) = report.joined
    assert count == "4 of 4"
    assert "concatenations written in place: 1" in report.summary()
    assert any("; writes from channel 32 of 112" in item.details for item in report.converted)
    assert report.count("BlockdnnConcat") == 0


@pytest.mark.parametrize("channels", [(20, 32, 16), (32, 20, 16), (32, 16, 20)])
def test_parts_that_start_within_a_block_are_copied(channels, rewrite, weights, image):
    weights(1, 1, 16, 16)
    result = rewrite(branches(weights, channels=channels), [2, 7, 7, 16])
    first = channels.index(20) * 16  # 32 channels before each of the others
    written = {0: [], 16: [(0, 84)], 32: [(0, 84), (32, 84)]}[first]
    assert [p for p in parts(result)][: len(written)] == written
    assert result.blockdnn["Concat"] == 1
    x = image(2, 7, 7, 16)
    result.assert_same(x)
    assert_as_copied(result, x)


def test_a_tail_at_the_end_is_no_obstacle(rewrite, image, conv):
    def function(x):
        joined = tf.concat([conv(x, 32), conv(x, 20)], 3)
        return conv(joined, 16)

    result = rewrite(function, [2, 6, 6, 16])
    assert result.blockdnn == {"Conv": 3, "Reorder": 2}
    assert_as_copied(result, image(2, 6, 6, 16))


def test_nested_concatenations_are_one(rewrite, weights, image, conv):
    filters = [weights(3, 3, 16, c) for c in (16, 32, 48)]

    def function(x):
        a, b, c = (tf.nn.conv2d(x, w, **_SAME) for w in filters)
        return conv(tf.concat([a, tf.concat([b, c], 3)], 3), 16)

    result = rewrite(function, [1, 6, 6, 16])
    assert parts(result) == [(0, 96), (16, 96), (48, 96)]
    assert result.report.joined[0][1] == "3 of 3"
    assert_as_copied(result, image(1, 6, 6, 16))


def dense_block(weights, layers=3, growth=16):
    """DenseNet: each layer joins a few channels to all before, which others read as parts."""
    stem, dense_layers, channels = weights(3, 3, 16, 32), [], 32
    for _ in range(layers):
        norm = weights(channels, low=0.5, high=2.0), weights(channels)
        dense_layers.append((*norm, weights(1, 1, channels, 32), weights(3, 3, 32, growth)))
        channels += growth
    last = weights(1, 1, channels, 16)

    def function(x):
        x = tf.nn.max_pool2d(tf.nn.conv2d(x, stem, **_SAME), 2, 2, "SAME")
        for gain, shift, narrow, wide in dense_layers:
            y = tf.nn.relu(x * gain + shift)
            y = tf.nn.relu(tf.nn.conv2d(y, narrow, **_SAME))
            x = tf.concat([x, tf.nn.conv2d(y, wide, **_SAME)], 3)
        return tf.nn.conv2d(x, last, **_SAME)

    return function


def test_a_dense_block_is_one_tensor(rewrite, weights, image):
    result = rewrite(dense_block(weights), [None, 12, 14, 16])
    assert "Concat" not in result.blockdnn
    assert parts(result) == [(0, 80), (32, 80), (48, 80), (64, 80)]
    readers = [list(n.attr["src_part"].list.i) for n in nodes(result)]
    assert sorted(r for r in readers if r) == [[0, 80]] * 3
    assert not any(name.startswith("^") for n in nodes(result) for name in n.input)
    for batch in (1, 2):
        x = image(batch, 12, 14, 16)
        result.assert_same(x)
        assert_as_copied(result, x)


@pytest.mark.parametrize("plain", [(1,), (0, 1), (1, 2), (0, 1, 2)])
def test_a_dense_block_of_which_some_layers_stay_plain(plain, rewrite, weights, image, conv):
    """Neighbours that are copied do not wait for one another where one leads to the other."""
    wide = [weights(3, 3, 32 + 16 * i, 16) for i in range(4)]

    def function(x):
        x = conv(x, 32)
        for i, kernel in enumerate(wide):
            y = tf.nn.conv2d(x, kernel, **_SAME)
            x = tf.concat([x, tf.math.bessel_i0e(y) if i in plain else y], 3)
        return conv(x, 32, 1)

    result = rewrite(function, [None, 12, 14, 16])
    assert result.blockdnn["Conv"] == 6, result.report.summary()
    assert len(parts(result)) >= 5 - len(plain)
    assert_as_copied(result, image(2, 12, 14, 16))


def test_readers_go_before_the_next_writer(rewrite, image, conv):
    """Nothing orders the pooling of `a` and the writer of `b`: a control edge does."""

    def function(x):
        a, b = conv(x, 32), conv(x, 32)
        joined = conv(tf.concat([a, b], 3), 16)
        pooled = tf.nn.max_pool2d(a, 3, 1, "SAME")
        return joined + conv(pooled, 16)

    result = rewrite(function, [1, 8, 8, 16])
    assert "Concat" not in result.blockdnn
    waits = [n for n in nodes(result) if any(name.startswith("^") for name in n.input)]
    assert len(waits) == 1 and waits[0].attr["num_into"].i == 1
    assert_as_copied(result, image(1, 8, 8, 16))


def test_what_a_later_op_reads_is_copied(rewrite, image, conv):
    """`a` is read by what comes after the concatenation, as a part and as an operand."""

    def later(x, read):
        a, b = conv(x, 32), conv(x, 32)
        return read(a, conv(tf.concat([a, b], 3), 32))

    def as_operand(a, y):
        return y + a

    def as_source(a, y):
        return tf.nn.max_pool2d(a, 3, 1, "SAME") * y

    for read in (as_operand, as_source):
        result = rewrite(lambda x, read=read: later(x, read), [1, 8, 8, 16])
        assert_as_copied(result, image(1, 8, 8, 16))
        if read is as_operand:
            assert result.blockdnn["Concat"] == 1 and parts(result) == [(0, 64), (32, 64)]


def test_the_next_writer_cannot_read_what_it_takes_over(rewrite, image, conv):
    def function(x):
        a = conv(x, 32)
        return conv(tf.concat([a, conv(a, 32)], 3), 16)

    result = rewrite(function, [1, 8, 8, 16])
    assert result.blockdnn["Concat"] == 1 and parts(result) == [(0, 64), (32, 64)]
    assert not any(n.attr["src_part"].list.i for n in nodes(result))
    assert_as_copied(result, image(1, 8, 8, 16))


@pytest.mark.parametrize("twice", [False, True])
def test_fetched_and_repeated_values_are_copied(twice, rewrite, weights, image, conv):
    def function(x):
        a, b = conv(x, 32), conv(x, 32)
        joined = tf.concat([a, b, a] if twice else [a, b], 3)
        y = tf.nn.conv2d(joined, weights(3, 3, 96 if twice else 64, 16), **_SAME)
        return y if twice else (y, a)

    result = rewrite(function, [1, 8, 8, 16])
    assert result.blockdnn["Concat"] == 1 + twice
    assert_as_copied(result, image(1, 8, 8, 16))


def test_nothing_to_write_in_place(rewrite, image, conv):
    def function(x):
        a = conv(x, 16)
        return a, conv(tf.concat([a, a], 3), 16)

    result = rewrite(function, [1, 8, 8, 16])
    assert result.blockdnn["Concat"] == 1 and not parts(result) and not result.report.joined
    assert_as_copied(result, image(1, 8, 8, 16))


def test_unknown_sizes(rewrite, weights, image):
    result = rewrite(dense_block(weights), [None, None, None, 16])
    assert "Concat" not in result.blockdnn
    for size in (8, 13):
        assert_as_copied(result, image(2, size, size, 16))


class _Joins(Builder):
    """Concatenations of what may be written in place, and of what may not."""

    channels = (16, 16, 32, 32, 20)

    def _combine(self, x, tensors):
        return x + self._choice([t for t in tensors if t.shape[1:] == x.shape[1:]])

    def steps(self):
        steps = [self._conv] * 2 + [self._concat] * 3
        return steps + [self._pool, self._activate, self._norm, self._combine]

    def build(self, x):
        joined, *extra = super().build(x, most=14)
        return [self._conv(joined, []), *extra]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_random_graphs(data, rewrite, image):
    joins = _Joins(lambda count: data.draw(st.integers(0, count - 1)))
    x = image(2, 5, 6, 16)
    result = rewrite(joins.build, x.shape, tolerance=2e-5)
    assert_as_copied(result, x)


@converts([1, 6, 6, 16], some={"Conv": 1})
def test_a_part_without_channels(x, conv):
    a, b, c = tf.split(conv(x, 32), [16, 0, 16], -1)
    return tf.nn.relu(tf.concat([c, b, a], -1))
