"""Shuffles, splits and concatenations between dense convolutions go into the weights."""

import pathlib
import sys

import numpy as np
import pytest
import tensorflow as tf
from converts import converts

from tf_blockdnn.python.targets import optimize

sys.path.insert(0, str(pathlib.Path(__file__).parents[4] / "benchmarks"))
from models import applications, shufflenet  # noqa: E402

_SAME = {"strides": 1, "padding": "SAME"}


def _reshaped(x, groups):
    n, h, w, c = x.shape
    n = -1 if n is None else n
    x = tf.transpose(tf.reshape(x, [n, h, w, groups, c // groups]), [0, 1, 2, 4, 3])
    return tf.reshape(x, [n, h, w, c])


def _gathered(x, groups):
    return tf.gather(x, np.arange(x.shape[3]).reshape(groups, -1).T.reshape(-1), axis=3)


def _stacked(x, groups):
    n, h, w, c = x.shape
    return tf.reshape(tf.stack(tf.split(x, groups, -1), -1), [-1 if n is None else n, h, w, c])


def _halves(x):
    return tf.split(x, 2, -1)


def _cut(x):
    half = x.shape[3] // 2
    return x[..., :half], x[:, :, :, half:]


def _sliced(x):
    half = x.shape[3] // 2
    return (
        tf.slice(x, [0, 0, 0, 0], [-1, -1, -1, half]),
        tf.slice(x, [0, 0, 0, half], [-1, -1, -1, -1]),
    )


def _uneven(x):
    half = x.shape[3] // 2
    return tf.split(x, [half, x.shape[3] - half], -1)


@pytest.fixture
def units(weights):
    """units(half, shuffle, split, count) -> a function: stem, so many units, 1x1 to 20 channels."""

    def make(half, shuffle=_reshaped, split=_halves, count=3, activation=tf.nn.relu, look=None):
        stem = [weights(3, 3, 3, half), weights(1, 1, 3, half)]
        of_unit = [
            (weights(1, 1, half, half), weights(3, 3, half, 1), weights(1, 1, half, half))
            for _ in range(count)
        ]
        bias, last = weights(half), weights(1, 1, 2 * half, 20)

        def convolved(x, kernel):
            return activation(tf.nn.bias_add(tf.nn.conv2d(x, kernel, **_SAME), bias))

        def function(image):
            x = shuffle(tf.concat([convolved(image, kernel) for kernel in stem], -1), 2)
            for expand, depthwise, project in of_unit:
                kept, worked = split(x)
                y = convolved(worked, expand)
                y = tf.nn.depthwise_conv2d(y, depthwise, [1, 1, 1, 1], "SAME")
                x = shuffle(tf.concat([kept, convolved(y, project)], -1), 2)
            if look is not None:
                return tf.nn.conv2d(x, last, **_SAME), look(x)
            return tf.nn.conv2d(x, last, **_SAME)

        return function

    return make


def _convolutions(result):
    """How many are in the graph, a pair counting as two."""
    return result.blockdnn.get("Conv", 0) + 2 * result.blockdnn.get("ConvDepthwise", 0)


@pytest.mark.parametrize("split", [_halves, _cut, _sliced, _uneven])
@pytest.mark.parametrize("shuffle", [_reshaped, _gathered, _stacked])
def test_any_spelling_disappears(rewrite, units, shuffle, split):
    result = rewrite(units(22, shuffle, split), [None, 6, 7, 3])
    assert set(result.blockdnn) <= {"Conv", "ConvDepthwise", "Reorder"}
    assert _convolutions(result) == 2 + 3 * 3 + 1 and len(result.report.reorders) <= 1
    kept = {"Transpose", "GatherV2", "Pack", "Split", "SplitV", "StridedSlice", "Slice", "ConcatV2"}
    assert not kept & set(result.ops)
    assert "4 channel shuffles" in result.report.summary()
    assert sum(op == "ConcatV2" for _, op in result.report.folded) == 4


def test_a_depthwise_one_before_what_is_not_ours(rewrite, weights):
    """Its channels keep their order: nobody there has weights to fold another one into."""

    def function(x):
        x = tf.concat(
            [
                tf.nn.conv2d(x, kernel, **_SAME)
                for kernel in (weights(1, 1, 3, 20), weights(3, 3, 3, 20))
            ],
            -1,
        )
        _, worked = _halves(_reshaped(x, 2))
        return tf.math.bessel_i0e(
            tf.nn.depthwise_conv2d(worked, weights(3, 3, 20, 1), [1, 1, 1, 1], "SAME")
        )

    result = rewrite(function, [None, 6, 7, 3])
    assert _convolutions(result) == 3 and result.blockdnn["Shuffle"] == 1


@pytest.mark.parametrize("half", [5, 16, 29, 58])
@pytest.mark.parametrize("groups", [2, 1])
def test_any_width(rewrite, units, half, groups):
    """With one group nothing is permuted, and the splits alone are folded."""
    result = rewrite(units(half, lambda x, g: _reshaped(x, groups)), [2, 5, 5, 3])
    assert set(result.blockdnn) <= {"Conv", "ConvDepthwise", "Reorder"}
    assert len(result.report.folded) >= 3


def test_what_is_not_zero_at_zero(rewrite, units):
    """Lanes that nothing needs hold values, which weights of zero leave out."""
    result = rewrite(units(22, activation=tf.sigmoid), [1, 6, 7, 3])
    assert "Shuffle" not in result.blockdnn and result.report.folded


def test_the_same_numbers_on_every_call(rewrite, image, units):
    """Every unit takes over the wide tensor of the one before, on recorded plans, too."""
    result = rewrite(units(22, count=5), [None, 6, 7, 3])
    for batch in (1, 1, 1, 1, 3, 3, 3, 1):
        result.assert_same(image(batch, 6, 7, 3))


@pytest.mark.parametrize(
    "look",
    [tf.identity, tf.math.bessel_i0e, lambda x: tf.reduce_max(x, [1, 2])],
    ids=["fetch", "op", "max"],
)
@converts([None, 6, 7, 3], report={"folded": []})
def test_another_reader_keeps_all_of_them(x, units, look):
    return units(22, look=look)(x)


@converts([None, 6, 7, 3], ops={"GatherV2": 0}, report={"folded": []})
def test_a_channel_taken_twice_is_moved_not_folded(x, conv):
    order = np.arange(24).repeat([1] * 16 + [2] * 4 + [0] * 4)
    return conv(tf.gather(conv(x, 24), order, axis=3), 20, 1)


def test_any_permutation_and_channels_that_nobody_reads(rewrite, conv):
    """Channels that nobody reads are not computed."""

    def function(x):
        y = tf.gather(conv(x, 40), np.arange(0, 40, 2)[::-1].copy(), axis=3)
        return conv(y, 20, 1)

    result = rewrite(function, [None, 6, 7, 3])
    assert [op for _, op in result.report.folded] == ["GatherV2"]
    shapes = [list(n.attr["weights_shape"].list.i) for n in result.nodes if n.op == "BlockdnnConv"]
    assert shapes == [[3, 3, 3, 32], [1, 1, 32, 20]]  # whole blocks


def test_readers_that_no_data_makes_wait(rewrite, weights):
    """Two readers of the first writers' channels, and writers that depend on neither."""
    kernels = [weights(3, 3, 3, 32) for _ in range(3)]
    reads = [weights(1, 1, 32, 24) for _ in range(3)]

    def function(x):
        a, b, c = (tf.nn.conv2d(x, kernel, **_SAME) for kernel in kernels)
        a0, a1 = tf.split(a, 2, -1)
        b0, b1 = tf.split(b, 2, -1)
        c0, c1 = tf.split(c, 2, -1)
        sources = [tf.concat(pair, -1) for pair in ([a0, b1], [b0, c0], [c1, a1])]
        return [
            tf.nn.conv2d(src, kernel, **_SAME) for src, kernel in zip(sources, reads, strict=True)
        ]

    result = rewrite(function, [None, 6, 7, 3])
    assert len(result.report.folded) == 6 and "Concat" not in result.blockdnn


def test_shufflenet_v1():
    """Grouped convolutions can order only within a group, so no shuffle goes into weights."""
    model = shufflenet.version_1(64, 3, (48, 96, 192), (2, 2, 2))
    fast = optimize(applications.randomise(model))
    assert fast.report.count("BlockdnnShuffle") == 6
    assert not fast.report.reorders and not fast.report.declined
    x = np.random.default_rng(3).standard_normal((2, 64, 64, 3), np.float32)
    wanted = model(x).numpy()
    assert np.abs(fast(x) - wanted).max() <= 1e-5 * np.abs(wanted).max()


def test_shufflenet_v2():
    """All shuffles, splits and concatenations of the network go, and every reorder with them."""
    widths, repeats = (52, 116, 140), (3, 4, 2)
    model = shufflenet.version_2(64, widths, repeats, head=64)
    model = applications.randomise(model)
    fast = optimize(model)
    counts = fast.report.counts()
    convolutions = counts["BlockdnnConv"] + 2 * counts["BlockdnnConvDepthwise"]
    assert convolutions == 2 + 3 * 5 + 3 * (sum(repeats) - 3)
    assert set(counts) == {
        "BlockdnnConv",
        "BlockdnnConvDepthwise",
        "BlockdnnGlobalPool",
        "BlockdnnInnerProduct",
        "BlockdnnPool",
    }
    assert "9 channel shuffles, 6 splits, 9 concatenations" in fast.report.summary()
    assert not fast.report.declined
    x = np.random.default_rng(3).standard_normal((2, 64, 64, 3), np.float32)
    wanted = model(x).numpy()
    assert np.abs(fast(x) - wanted).max() <= 1e-5 * np.abs(wanted).max()
