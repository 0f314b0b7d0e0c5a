"""Convolutions against stock TensorFlow: integer data, zero tolerance."""

import itertools

import numpy as np
import pytest
import references
import tensorflow as tf
from blocked_numpy import Blocked
from hypothesis import given, settings
from hypothesis import strategies as st

import tf_blockdnn as bd

pytestmark = pytest.mark.each_isa


def check(blocked, x, weights, *, groups=1, src_layout="nChw16c", dst_layout="nChw16c", **window):
    """Runs one direct convolution in the given layouts and compares every element."""
    channels, oc = x.shape[3], weights.shape[3]
    src = blocked.pack(x) if src_layout == "nChw16c" else x
    window = {"padding": "SAME"} | window
    ours = bd.ops.conv(
        src,
        weights,
        groups=groups,
        channels=channels,
        src_layout=src_layout,
        dst_layout=dst_layout,
        algorithm="direct",
        **window,
    )
    if dst_layout == "nChw16c":
        ours = blocked.unpack(ours, oc)
    np.testing.assert_array_equal(ours, references.conv(x, weights, groups=groups, **window))


@pytest.mark.parametrize("ksize", [(1, 1), (3, 3), (5, 5), (7, 7), (1, 3), (3, 1), (2, 2), (4, 6)])
@pytest.mark.parametrize("strides", [(1, 1), (2, 2), (2, 1), (3, 2)])
@pytest.mark.parametrize("padding", ["SAME", "VALID", [[1, 2], [0, 3]]])
def test_windows(ksize, strides, padding, integers, blocked):
    x = integers(2, 11, 9, 20)
    check(blocked, x, integers(*ksize, 20, 36), strides=strides, padding=padding)


@pytest.mark.parametrize("dilations", [(2, 2), (3, 1), (1, 4)])
@pytest.mark.parametrize("strides", [(1, 1), (2, 2)])
@pytest.mark.parametrize("padding", ["SAME", "VALID", [[2, 1], [3, 0]]])
def test_dilations(dilations, strides, padding, integers, blocked):
    x = integers(1, 13, 12, 17)
    weights = integers(3, 3, 17, 33)
    check(blocked, x, weights, strides=strides, padding=padding, dilations=dilations)


@pytest.mark.parametrize(
    "ic,oc", list(itertools.product([1, 4, 15, 16, 17, 48, 100], [1, 3, 16, 31, 32, 33, 80]))
)
def test_channels(ic, oc, integers, blocked):
    check(blocked, integers(1, 6, 7, ic), integers(3, 3, ic, oc))
    check(blocked, integers(1, 6, 7, ic), integers(1, 1, ic, oc))


@pytest.mark.parametrize("h,w", [(1, 1), (1, 29), (7, 7), (14, 14), (15, 28), (56, 3), (30, 57)])
def test_planes(h, w, integers, blocked):
    x = integers(1, h, w, 32)
    check(blocked, x, integers(3, 3, 32, 48))
    check(blocked, x, integers(1, 1, 32, 48))
    check(blocked, x, integers(1, 1, 32, 48), strides=(2, 2))


def test_long_sums(integers, blocked):
    """Many input channels, so that sums are continued from memory."""
    check(blocked, integers(1, 7, 7, 528), integers(3, 3, 528, 64))
    check(blocked, integers(1, 7, 7, 2048), integers(1, 1, 2048, 40))


@pytest.mark.parametrize(
    "groups,ic,oc",
    [(2, 32, 32), (2, 32, 64), (2, 20, 12), (3, 9, 6), (4, 64, 32), (5, 40, 15), (8, 24, 48),
     (32, 128, 128), (2, 64, 34)],
)  # fmt: skip
@pytest.mark.parametrize("strides", [(1, 1), (2, 2)])
def test_groups(groups, ic, oc, strides, integers, blocked):
    weights = integers(3, 3, ic // groups, oc)
    check(blocked, integers(2, 6, 9, ic), weights, groups=groups, strides=strides)


@pytest.mark.parametrize("channels", [1, 3, 16, 24, 50])
@pytest.mark.parametrize("multiplier", [1, 2, 3])
@pytest.mark.parametrize("ksize", [(3, 3), (5, 5), (1, 4)])
@pytest.mark.parametrize("strides", [(1, 1), (2, 2)])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_depthwise(channels, multiplier, ksize, strides, padding, integers, blocked):
    x = integers(2, 9, 8, channels)
    depthwise_filter = integers(*ksize, channels, multiplier)
    oc = channels * multiplier
    ours = bd.ops.conv(
        blocked.pack(x),
        depthwise_filter,
        weights_shape=[*ksize, 1, oc],
        groups=channels,
        strides=strides,
        padding=padding,
    )
    expected = tf.nn.depthwise_conv2d(x, depthwise_filter, [1, *strides, 1], padding)
    np.testing.assert_array_equal(blocked.unpack(ours, oc), expected)


@pytest.mark.parametrize(
    "dilations,strides", [((2, 2), (1, 1)), ((1, 3), (2, 1)), ((2, 1), (3, 3))]
)
@pytest.mark.parametrize("padding", ["SAME", [[4, 0], [1, 5]]])
def test_depthwise_windows(dilations, strides, padding, integers, blocked):
    check(
        blocked,
        integers(1, 12, 17, 21),
        integers(3, 3, 1, 21),
        groups=21,
        strides=strides,
        padding=padding,
        dilations=dilations,
    )


@pytest.mark.parametrize("ic", [1, 2, 3, 4, 5, 16, 20])
@pytest.mark.parametrize("ksize,strides", [(7, 2), (3, 2), (3, 1), (1, 1), (4, 4)])
@pytest.mark.parametrize("padding", ["SAME", "VALID", [[3, 3], [3, 2]]])
def test_plain_source(ic, ksize, strides, padding, integers, blocked):
    x = integers(2, 15, 18, ic)
    weights = integers(ksize, ksize, ic, 40)
    check(blocked, x, weights, src_layout="nhwc", strides=(strides, strides), padding=padding)


@pytest.mark.parametrize("groups,ic,oc", [(3, 3, 6), (2, 4, 32)])
def test_plain_source_groups(groups, ic, oc, integers, blocked):
    weights = integers(3, 3, ic // groups, oc)
    check(blocked, integers(1, 8, 9, ic), weights, groups=groups, src_layout="nhwc")


@pytest.mark.parametrize("dilations", [(2, 2), (1, 3)])
def test_plain_source_dilations(dilations, integers, blocked):
    x, weights = integers(1, 16, 15, 3), integers(3, 3, 3, 32)
    check(blocked, x, weights, src_layout="nhwc", dilations=dilations)


@pytest.mark.parametrize("oc", [1, 2, 3, 4, 5, 16, 21])
@pytest.mark.parametrize("ksize", [(1, 1), (3, 3)])
@pytest.mark.parametrize("strides", [(1, 1), (2, 2)])
def test_plain_result(oc, ksize, strides, integers, blocked):
    x, weights = integers(2, 8, 9, 70), integers(*ksize, 70, oc)
    check(blocked, x, weights, dst_layout="nhwc", strides=strides)


@pytest.mark.parametrize("ic,oc", [(3, 2), (20, 40)])
def test_plain_to_plain(ic, oc, integers, blocked):
    x, weights = integers(2, 8, 9, ic), integers(3, 3, ic, oc)
    check(blocked, x, weights, src_layout="nhwc", dst_layout="nhwc")


@pytest.mark.parametrize("window", [(1, 1), (3, 3)], ids=str)
@pytest.mark.parametrize("ic,oc,h,w", [(16, 16, 28, 28), (20, 40, 1, 1), (96, 70, 13, 20)])
def test_paired(window, ic, oc, h, w, floats, blocked):
    x, weights, bias = floats(2, h, w, ic), floats(*window, ic, oc), floats(oc)
    options = {
        "padding": "SAME",
        "algorithm": "paired",
        "post_ops": "binary(add,channel,#0);eltwise(relu)",
    }
    ours = bd.ops.conv(blocked.pack(x), weights, channels=ic, args=[bias], **options)
    wide = [v.astype(np.float64) for v in (x, weights)]
    expected = np.maximum(references.conv(*wide, padding="SAME") + bias, 0)
    bound = 1e-5 * np.sqrt(np.prod(window) * ic)
    np.testing.assert_allclose(blocked.unpack(ours, oc), expected, rtol=0, atol=bound)


@pytest.mark.parametrize("algorithm", ["auto", "paired", "auto_smallest"])
def test_pairs_are_multiplied_with_avx512_only(algorithm):
    plan = bd.ops.memory_plan(
        "conv", (1, 4, 9, 9, 16), (1, 1, 64, 64), algorithm=algorithm, padding="SAME"
    )
    if not bd.info()["isa"].startswith("avx512"):
        assert plan.algorithm == "direct"
    elif algorithm == "paired":
        assert plan.algorithm == "paired"
    else:  # by the kind of CPU
        assert plan.algorithm in ("direct", "paired")


@pytest.mark.parametrize("algorithm", ["auto", "winograd"])
@pytest.mark.parametrize("window", [(3, 3), (5, 5), (1, 3), (3, 1), (1, 7), (7, 1)], ids=str)
@pytest.mark.parametrize("ic,oc,h,w", [(16, 16, 28, 28), (20, 40, 1, 1), (96, 64, 13, 20)])
@pytest.mark.parametrize("padding", ["SAME", "VALID", [[3, 4], [3, 5]]])
def test_winograd(algorithm, window, ic, oc, h, w, padding, floats, blocked):
    if padding == "VALID" and h < 7:
        padding = "SAME"
    x, weights, bias = floats(2, h, w, ic), floats(*window, ic, oc), floats(oc)
    ours = bd.ops.conv(
        blocked.pack(x),
        weights,
        channels=ic,
        padding=padding,
        algorithm=algorithm,
        post_ops="binary(add,channel,#0);eltwise(relu)",
        args=[bias],
    )
    wide = [v.astype(np.float64) for v in (x, weights)]
    expected = np.maximum(references.conv(*wide, padding=padding) + bias, 0)
    # Of sums of so many products of standard normals.
    bound = 3e-5 * np.sqrt(np.prod(window) * ic)
    np.testing.assert_allclose(blocked.unpack(ours, oc), expected, rtol=0, atol=bound)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(data=st.data())
def test_any_convolution(data):
    """Everything at once, the corner where two special cases meet included."""

    def draw(low, high):
        return data.draw(st.integers(low, high))

    groups = data.draw(st.sampled_from([1, 1, 2, 3, 7, 16]))
    ic, oc = groups * draw(1, 20), groups * draw(1, 20)
    kh, kw = draw(1, 4), draw(1, 4)
    dilations = (draw(1, 2), draw(1, 3))
    padding = data.draw(st.sampled_from(["SAME", "VALID", "EXPLICIT"]))
    if padding == "EXPLICIT":
        padding = [[draw(0, 5), draw(0, 5)], [draw(0, 5), draw(0, 5)]]
    h, w = draw(7, 20), draw(10, 20)
    rng = np.random.default_rng(draw(0, 1000))
    check(
        Blocked,
        rng.integers(-4, 5, (draw(1, 2), h, w, ic)).astype(np.float32),
        rng.integers(-4, 5, (kh, kw, ic // groups, oc)).astype(np.float32),
        groups=groups,
        src_layout=data.draw(st.sampled_from(["nChw16c", "nhwc"])),
        dst_layout=data.draw(st.sampled_from(["nChw16c", "nhwc"])),
        strides=(draw(1, 3), draw(1, 3)),
        padding=padding,
        dilations=dilations,
    )


@pytest.mark.parametrize("n,h,w", [(0, 8, 8), (2, 0, 8), (2, 8, 0)])
@pytest.mark.parametrize("ic", [3, 20])
@pytest.mark.parametrize("dst_layout", ["nChw16c", "nhwc"])
def test_empty(n, h, w, ic, dst_layout):
    src_layout = "nhwc" if ic == 3 else "nChw16c"
    src = tf.zeros((n, h, w, ic) if ic == 3 else (n, 2, h, w, 16))
    ours = bd.ops.conv(
        src,
        tf.ones((3, 3, ic, 5)),
        strides=2,
        src_layout=src_layout,
        dst_layout=dst_layout,
        padding="SAME",
    )
    h, w = -(-h // 2), -(-w // 2)
    assert ours.shape == ((n, h, w, 5) if dst_layout == "nhwc" else (n, 1, h, w, 16))


def test_nothing_but_padding(integers, blocked):
    """An empty plane with padding has a result: the bias."""
    bias = integers(7)
    ours = bd.ops.conv(
        tf.zeros((1, 2, 0, 0, 16)),
        integers(3, 3, 20, 7),
        padding=[[2, 2], [2, 3]],
        post_ops="binary(add,channel,#0)",
        args=[bias],
    )
    np.testing.assert_array_equal(blocked.unpack(ours, 7), bias * np.ones((1, 2, 3, 7)))


def test_dynamic_shapes(integers, blocked):
    """More shapes than the kernel keeps plans for, some of them again."""
    weights = integers(3, 3, 5, 18)

    @tf.function(input_signature=[tf.TensorSpec([None, 1, None, None, 16])])
    def conv(x):
        y = bd.ops.conv(
            x, weights, strides=2, constant_weights=True, algorithm="direct", padding="SAME"
        )
        assert y.shape.as_list() == [None, 2, None, None, 16]
        return y

    for h in [*range(1, 40), *range(1, 40, 5)]:
        x = integers(1 + h % 2, h, 41 - h, 5)
        expected = references.conv(x, weights, strides=(2, 2))
        np.testing.assert_array_equal(blocked.unpack(conv(blocked.pack(x)), 18), expected)


def test_strides_are_bounded():
    """Plans have an entry for each row of a stride: 2^31 of them would end the process."""
    with pytest.raises(tf.errors.InvalidArgumentError, match="strides of at most 65536"):
        bd.ops.conv(
            tf.zeros((1, 1, 4, 4, 16)),
            tf.zeros((3, 3, 16, 16)),
            strides=[2**31 - 1, 1],
            padding="SAME",
        )
