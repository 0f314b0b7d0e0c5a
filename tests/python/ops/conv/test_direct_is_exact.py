"""With algorithm="direct" infinities and NaN are exactly where TensorFlow's kernels put them.

One bad value lies in each image of a batch, in every kind of place, and any that spreads further
than its window, its group or its image is found."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from blocked_numpy import Blocked

import tf_blockdnn as bd

BAD = (np.nan, np.inf, -np.inf)
pytestmark = pytest.mark.each_isa


def _weights(*shape):
    """None is zero or small, of both signs."""
    rng = np.random.default_rng(3)
    return (rng.uniform(0.5, 1.5, shape) * rng.choice([-1, 1], shape)).astype(np.float32)


def _spoiled(*shape):
    """[images, *shape], each with one bad value: corners, edges and the middle of every axis."""
    places = list(itertools.product(*[sorted({0, size // 2, size - 1}) for size in shape]))
    x = np.random.default_rng(4).standard_normal((len(places) * len(BAD), *shape))
    for image, (place, bad) in zip(x, itertools.product(places, BAD), strict=True):
        image[place] = bad
    return x.astype(np.float32)


def _assert_same_places(got, wanted):
    got, wanted = np.asarray(got), np.asarray(wanted)
    touched = ~np.isfinite(wanted)
    assert touched.any() and not touched.all()
    np.testing.assert_array_equal(~np.isfinite(got), touched)
    np.testing.assert_array_equal(got[touched], wanted[touched])
    scale = abs(wanted[~touched]).max()
    np.testing.assert_allclose(got[~touched], wanted[~touched], atol=1e-5 * scale)


CONVOLUTIONS = [  # channels, output channels, groups, window, strides, dilations
    (20, 40, 1, (3, 3), (1, 1), (1, 1)),
    (20, 3, 1, (3, 3), (2, 2), (1, 1)),
    (32, 32, 8, (3, 3), (1, 1), (1, 1)),
    (32, 32, 8, (1, 1), (1, 1), (1, 1)),
    (24, 40, 4, (3, 2), (2, 1), (1, 1)),
    (48, 48, 2, (3, 3), (1, 1), (2, 3)),
    (32, 64, 2, (3, 3), (2, 2), (1, 1)),
    (20, 20, 20, (3, 3), (1, 1), (1, 1)),
    (20, 20, 20, (5, 5), (2, 2), (1, 1)),
    (20, 20, 20, (3, 3), (1, 1), (2, 2)),
    (10, 20, 10, (3, 3), (1, 1), (1, 1)),
]


@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("layouts", [("nChw16c", "nChw16c"), ("nhwc", "nhwc")], ids=str)
def test_conv(layouts, padding, case):
    channels, outputs, groups, window, strides, dilations = case
    src = _spoiled(9, 8, channels)
    weights = _weights(*window, channels // groups, outputs)
    options = dict(strides=strides, dilations=dilations, padding=padding)
    wanted = tf.concat(
        [
            tf.nn.conv2d(x, w, **options)
            for x, w in zip(tf.split(src, groups, -1), tf.split(weights, groups, -1), strict=True)
        ],
        -1,
    )
    y = bd.ops.conv(
        Blocked.pack(src) if layouts[0] == "nChw16c" else src,
        weights,
        groups=groups,
        how="direct",
        src_layout=layouts[0],
        dst_layout=layouts[1],
        **options,
    )
    y = Blocked.unpack(y, outputs) if layouts[1] == "nChw16c" else y
    _assert_same_places(y, wanted)


@pytest.mark.parametrize("outputs", [3, 8, 24])
@pytest.mark.parametrize("crop", ["SAME", "VALID"])
@pytest.mark.parametrize("case", [(1, 2), (2, 2), (3, 2), (4, 2), (5, 3), (2, 3), (3, 1)], ids=str)
def test_conv_transpose(case, crop, outputs):
    kernel, stride = case
    src, weights = _spoiled(5, 4, 20), _weights(kernel, kernel, outputs, 20)
    full = [(size - 1) * stride + kernel for size in (5, 4)]
    sizes = [size * stride for size in (5, 4)] if crop == "SAME" else full
    wanted = tf.nn.conv2d_transpose(src, weights, [len(src), *sizes, outputs], stride, crop)
    before = max(kernel - stride, 0) // 2 if crop == "SAME" else 0
    crops = [[before, whole - before - size] for whole, size in zip(full, sizes, strict=True)]
    for layout in ("nChw16c", "nhwc") if outputs < 16 else ("nChw16c",):
        y = bd.ops.conv_transpose(
            Blocked.pack(src),
            weights,
            strides=stride,
            crops=crops,
            how="direct",
            dst_layout=layout,
        )
        _assert_same_places(Blocked.unpack(y, outputs) if layout == "nChw16c" else y, wanted)


@pytest.mark.parametrize("channels", [3, 20])
@pytest.mark.parametrize("strides", [(1, 1, 1), (2, 1, 2)], ids=str)
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_conv_volume(padding, strides, channels):
    src, weights = _spoiled(4, 5, 6, channels), _weights(3, 2, 3, channels, 20)
    wanted = tf.nn.conv3d(src, weights, [1, *strides, 1], padding)
    wanted = np.reshape(wanted, (-1, *wanted.shape[2:]))
    slices = src.reshape(-1, *src.shape[2:])
    options = dict(depth=4, strides=strides, padding=padding, how="direct")
    y = bd.ops.conv_volume(Blocked.pack(slices), weights, **options)
    _assert_same_places(Blocked.unpack(y, 20), wanted)
    y = bd.ops.conv_volume(slices, weights, src_layout="nhwc", dst_layout="nhwc", **options)
    _assert_same_places(y, wanted)


@pytest.mark.parametrize("strides", [1, 2])
def test_conv_depthwise(strides):
    src, expand, filters = _spoiled(9, 8, 20), _weights(1, 1, 20, 40), _weights(3, 3, 40, 1)
    hidden = tf.nn.conv2d(src, expand, 1, "VALID")
    wanted = tf.nn.depthwise_conv2d(hidden, filters, [1, strides, strides, 1], "SAME")
    y = bd.ops.conv_depthwise(
        Blocked.pack(src), expand, filters, strides=strides, how="direct", padding="SAME"
    )
    _assert_same_places(Blocked.unpack(y, 40), wanted)


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("rows", [1, 3, 40])
def test_inner_product(rows, constant):
    weights = _weights(70, 40)
    for src in _spoiled(rows, 70):
        y = bd.ops.inner_product(src, weights, how=f"{'constant' * constant} direct")
        wanted = src.astype(np.float64) @ weights
        touched = ~np.isfinite(wanted)
        np.testing.assert_array_equal(~np.isfinite(y), touched)
        np.testing.assert_array_equal(np.asarray(y)[touched], wanted[touched])
