import numpy as np
import pytest
import tensorflow as tf
from quantized_numpy import BF16, U8, Tensor, assert_stands_for

import tf_blockdnn as bd

pytestmark = pytest.mark.each_isa


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


@pytest.mark.parametrize("dtype", [BF16, U8])
def test_slices_and_parts(dtype):
    rng = np.random.default_rng(5)
    x, into = Tensor(rng, (2, 3, 4, 40), dtype), Tensor(rng, (2, 3, 4, 52), dtype)
    y = bd.ops.concat(
        [x.blocked],
        channels=[20],
        src_parts=[(7, 40)],
        dst_part=(32, 52),
        into=into.blocked,
        src_quantizations=x.quantization and [x.quantization],
    )
    expected = np.concatenate([into.real[..., :32], x.real[..., 7:27]], 3)
    assert_stands_for(y, 52, expected, dtype, x.quantization, steps=0)
