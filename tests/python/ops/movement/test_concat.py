import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd

pytestmark = pytest.mark.each_isa


@pytest.mark.parametrize(
    "channels",
    [(16,), (5,), (16, 32), (3, 5), (17, 16), (16, 1, 15), (7, 40, 9, 33), (15, 1, 16, 31, 2)],
)
@pytest.mark.parametrize("n,h,w", [(1, 3, 4), (2, 7, 7)])
def test_against_tensorflow(channels, n, h, w, floats, blocked):
    values = [floats(n, h, w, c) for c in channels]
    joined = bd.ops.concat([blocked.pack(v) for v in values], channels=channels)
    expected = tf.concat(values, axis=3)
    np.testing.assert_array_equal(blocked.unpack(joined, sum(channels)), expected)


@pytest.mark.parametrize("n,h,w", [(0, 2, 2), (2, 0, 3), (1, 3, 0)])
def test_empty(n, h, w):
    values = [tf.zeros((n, 1, h, w, 16)), tf.zeros((n, 2, h, w, 16))]
    assert bd.ops.concat(values, channels=[3, 20]).shape == (n, 2, h, w, 16)


def test_the_same_value_twice(floats, blocked):
    x = floats(1, 2, 3, 10)
    packed = blocked.pack(x)
    joined = bd.ops.concat([packed, packed], channels=[10, 10])
    np.testing.assert_array_equal(blocked.unpack(joined, 20), np.concatenate([x, x], 3))


@pytest.mark.parametrize("first", [0, 1, 15, 16, 20])
@pytest.mark.parametrize("count", [1, 12, 16, 20])
def test_channels_from_any_on(first, count, floats, blocked):
    x, y = floats(2, 3, 4, 40), floats(2, 3, 4, 7)
    part = bd.ops.concat([blocked.pack(x)], channels=[count], src_parts=[(first, 40)])
    np.testing.assert_array_equal(blocked.unpack(part, count), x[..., first : first + count])
    joined = bd.ops.concat(
        [blocked.pack(y), blocked.pack(x)], channels=[7, count], src_parts=[(0, 7), (first, 40)]
    )
    expected = np.concatenate([y, x[..., first : first + count]], axis=3)
    np.testing.assert_array_equal(blocked.unpack(joined, 7 + count), expected)


def test_gradient_of_a_part_is_zero_beside_it(floats, blocked):
    x, dy = floats(1, 2, 2, 40), floats(1, 2, 2, 20)
    src = tf.constant(blocked.pack(x))
    with tf.GradientTape() as tape:
        tape.watch(src)
        part = bd.ops.concat([src], channels=[20], src_parts=[(10, 40)])
    grad = tape.gradient(part, src, output_gradients=tf.constant(blocked.pack(dy)))
    expected = np.zeros_like(x)
    expected[..., 10:30] = dy
    np.testing.assert_array_equal(blocked.unpack(grad.numpy(), 40), expected)
