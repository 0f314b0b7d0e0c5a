"""Convolutions against stock TensorFlow: integer data, zero tolerance."""

import numpy as np
import pytest
import references
import tensorflow as tf
from blocked_numpy import Blocked
from hypothesis import given, settings
from hypothesis import strategies as st

import tf_blockdnn as bd

pytestmark = pytest.mark.each_isa


def check(x, weights, *, groups=1, src_layout="nChw16c", dst_layout="nChw16c", **window):
    """Runs one direct convolution in the given layouts and compares every element."""
    channels, oc = x.shape[3], weights.shape[3]
    src = Blocked.pack(x) if src_layout == "nChw16c" else x
    window = {"padding": "SAME"} | window
    ours = bd.ops.conv(
        src,
        weights,
        groups=groups,
        channels=channels,
        src_layout=src_layout,
        dst_layout=dst_layout,
        how="direct",
        **window,
    )
    if dst_layout == "nChw16c":
        ours = Blocked.unpack(ours, oc)
    np.testing.assert_array_equal(ours, references.conv(x, weights, groups=groups, **window))


def test_long_sums(integers):
    """Many input channels, so that sums are continued from memory."""
    check(integers(1, 7, 7, 528), integers(3, 3, 528, 64))
    check(integers(1, 7, 7, 2048), integers(1, 1, 2048, 40))


@pytest.mark.parametrize("algorithm", ["auto", "paired", "auto_smallest"])
def test_pairs_are_multiplied_with_avx512_only(algorithm):
    plan = bd.ops.memory_plan(
        "conv", (1, 4, 9, 9, 16), (1, 1, 64, 64), how=algorithm, padding="SAME"
    )
    if not bd.info()["isa"].startswith("avx512"):
        assert plan.algorithm == "direct"
    elif algorithm == "paired":
        assert plan.algorithm == "paired"
    else:  # by the kind of CPU
        assert plan.algorithm in ("direct", "paired")


@pytest.mark.parametrize("src_layout", ["nChw16c", "nhwc"])
@pytest.mark.parametrize("dst_layout", ["nChw16c", "nhwc"])
@pytest.mark.parametrize("grouped", [False, True])
def test_any_convolution(grouped, dst_layout, src_layout):
    """Everything at once, the corner where two special cases meet included."""

    @settings(max_examples=40)
    @given(data=st.data())
    def check_one(data):
        def draw(low, high):
            return data.draw(st.integers(low, high))

        groups = data.draw(st.sampled_from([2, 3, 7, 16, 32])) if grouped else 1
        most = 5 if groups == 32 else 20 if grouped else 100
        ic, oc = groups * draw(1, most), groups * draw(1, most)
        kernel = [data.draw(st.sampled_from([1, 2, 3, 3, 4, 5, 6, 7])) for _ in "hw"]
        dilations = (draw(1, 2), draw(1, 3))
        padding = data.draw(st.sampled_from(["SAME", "VALID", "EXPLICIT"]))
        least = [
            1 if padding == "SAME" else (k - 1) * d + 1
            for k, d in zip(kernel, dilations, strict=True)
        ]
        if padding == "EXPLICIT":
            padding = [[draw(0, 5), draw(0, 5)], [draw(0, 5), draw(0, 5)]]
        rng = np.random.default_rng(draw(0, 1000))
        plane = [size + draw(0, 30 if axis else 14) for axis, size in enumerate(least)]
        check(
            rng.integers(-4, 5, (draw(1, 2), *plane, ic)).astype(np.float32),
            rng.integers(-4, 5, (*kernel, ic // groups, oc)).astype(np.float32),
            groups=groups,
            src_layout=src_layout,
            dst_layout=dst_layout,
            strides=(draw(1, 3), draw(1, 3)),
            padding=padding,
            dilations=dilations,
        )

    check_one()


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
        y = bd.ops.conv(x, weights, strides=2, how="constant direct", padding="SAME")
        assert y.shape.as_list() == [None, 2, None, None, 16]
        return y

    for h in [*range(1, 40), *range(1, 40, 5)]:
        x = integers(1 + h % 2, h, 41 - h, 5)
        expected = references.conv(x, weights, strides=(2, 2))
        np.testing.assert_array_equal(blocked.unpack(conv(blocked.pack(x)), 18), expected)
