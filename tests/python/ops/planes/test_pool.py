import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd

pytestmark = pytest.mark.each_isa

TF_POOL = {"max": tf.nn.max_pool2d, "avg": tf.nn.avg_pool2d}


def check(kind, x, ksize, strides, padding, blocked):
    channels = x.shape[-1]
    ours = bd.ops.pool(
        blocked.pack(x), kind, ksize, channels=channels, strides=strides, padding=padding
    )
    expected = TF_POOL[kind](x, ksize, strides, padding).numpy()
    ours = blocked.unpack(ours, channels)
    if kind != "avg":
        np.testing.assert_array_equal(ours, expected)
    else:
        np.testing.assert_allclose(ours, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("ksize", [[1, 1], [2, 2], [3, 3], [2, 3], [5, 1]])
@pytest.mark.parametrize("strides", [[1, 1], [2, 2], [3, 1], [1, 2]])
@pytest.mark.parametrize("n,h,w,c", [(1, 8, 8, 16), (2, 7, 9, 19), (1, 5, 6, 3)])
def test_against_tensorflow(kind, padding, ksize, strides, n, h, w, c, integers, blocked):
    check(kind, integers(n, h, w, c), ksize, strides, padding, blocked)


@pytest.mark.parametrize("kind", ["max", "avg"])
def test_window_larger_than_the_plane(kind, floats, blocked):
    check(kind, floats(1, 2, 3, 20), [7, 7], [2, 2], "SAME", blocked)


def test_max_of_negative_values_ignores_padding(blocked):
    x = np.full((1, 4, 4, 5), -3, np.float32)
    check("max", x, [3, 3], [1, 1], "SAME", blocked)


@pytest.mark.parametrize("kind", ["max", "avg"])
def test_explicit_padding_does_not_count(kind, integers, blocked):
    x = integers(2, 5, 6, 18)
    top, bottom, left, right = 1, 0, 2, 1
    ours = bd.ops.pool(
        blocked.pack(x), kind, 3, channels=18, strides=2, padding=[[top, bottom], [left, right]]
    )
    pads = [[0, 0], [top, bottom], [left, right], [0, 0]]
    if kind != "avg":
        padded = np.pad(x, pads, constant_values=-np.inf)
        expected = tf.nn.max_pool2d(padded, 3, 2, "VALID")
    else:
        total = tf.nn.avg_pool2d(np.pad(x, pads), 3, 2, "VALID")
        expected = total / tf.nn.avg_pool2d(np.pad(np.ones_like(x), pads), 3, 2, "VALID")
    np.testing.assert_allclose(blocked.unpack(ours, 18), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("n,h,w", [(0, 4, 4), (2, 0, 4), (2, 4, 0)])
def test_empty(n, h, w):
    ours = bd.ops.pool(tf.zeros((n, 2, h, w, 16)), "max", 3, channels=20, strides=2, padding="SAME")
    assert ours.shape == (n, 2, -(-h // 2), -(-w // 2), 16)


@pytest.mark.parametrize("kind,reduce", [("max", tf.reduce_max), ("avg", tf.reduce_mean)])
@pytest.mark.parametrize("dst_layout", ["nc", "nhwc", "nChw16c"])
@pytest.mark.parametrize("n,h,w,c", [(1, 7, 7, 64), (3, 1, 1, 5), (2, 14, 13, 33)])
def test_global(kind, reduce, dst_layout, n, h, w, c, floats, blocked):
    x = floats(n, h, w, c)
    ours = bd.ops.global_pool(blocked.pack(x), kind, channels=c, dst_layout=dst_layout)
    expected = reduce(x, axis=[1, 2], keepdims=True)
    if dst_layout == "nChw16c":
        ours = blocked.unpack(ours, c)
    elif dst_layout == "nc":
        assert ours.shape == (n, c)
        ours = ours[:, tf.newaxis, tf.newaxis]
    np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-6)


def test_global_of_no_images():
    assert bd.ops.global_pool(tf.zeros((0, 1, 7, 7, 16)), "avg", channels=9).shape == (0, 9)


def test_nan_is_the_maximum_wherever_it_stands():
    """tf.nn.max_pool2d has 5 or NaN for (5, 1, NaN), by the order; never what comes after it."""
    for row in ([5, 1, np.nan], [5, np.nan, 1], [np.nan, 5, 1]):
        x = np.zeros((1, 1, 1, 3, 16), np.float32) + np.float32(row)[:, None]
        y = bd.ops.pool(x, "max", [1, 3], channels=16, padding="VALID").numpy()
        z = bd.ops.global_pool(x, "max", channels=16).numpy()
        assert all(np.isnan(v) or v == 5 for v in (y.flat[0], z.flat[0])), (row, y.flat[0])
