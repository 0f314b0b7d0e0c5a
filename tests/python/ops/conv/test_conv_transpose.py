"""bd.ops.conv_transpose against tf.nn.conv2d_transpose."""

import numpy as np
import pytest
import tensorflow as tf
from blocked_numpy import Blocked

import tf_blockdnn as bd

block, unblock = Blocked.pack, Blocked.unpack


def _random(*shape, seed=1):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def _wanted(x, weights, strides, padding, size):
    return tf.nn.conv2d_transpose(x, weights, [len(x), *size, weights.shape[2]], strides, padding)


@pytest.mark.each_isa
@pytest.mark.parametrize("channels", [16, 40])
@pytest.mark.parametrize("kernel, stride", [(2, 2), (3, 2), (4, 2), (5, 2), (2, 3), (3, 1)])
def test_valid_and_same(kernel, stride, channels):
    x, weights = _random(2, 6, 5, 24), _random(kernel, kernel, channels, 24, seed=2)
    size = [(n - 1) * stride + kernel for n in (6, 5)]
    y = bd.ops.conv_transpose(block(x), weights, strides=stride)
    wanted = _wanted(x, weights, stride, "VALID", size)
    np.testing.assert_allclose(unblock(y, channels), wanted, atol=1e-4)
    total = max(kernel - stride, 0)
    crops = [[total // 2, kernel - stride - total // 2]] * 2
    y = bd.ops.conv_transpose(block(x), weights, strides=stride, crops=crops)
    wanted = _wanted(x, weights, stride, "SAME", [6 * stride, 5 * stride])
    np.testing.assert_allclose(unblock(y, channels), wanted, atol=1e-4)


def test_chain_into_a_part():
    x, weights, bias = _random(2, 4, 4, 16), _random(2, 2, 16, 16, seed=2), _random(16, seed=3)
    chain = bd.PostOps().binary("add", bias).eltwise("relu")
    into = block(_random(2, 8, 8, 48, seed=4))
    y = bd.ops.conv_transpose(
        block(x), weights, strides=2, post_ops=chain, dst_part=(16, 48), into=into
    )
    wanted = tf.nn.relu(_wanted(x, weights, 2, "VALID", [8, 8]) + bias)
    np.testing.assert_allclose(unblock(y, 48)[..., 16:32], wanted, atol=1e-5)
    np.testing.assert_array_equal(np.delete(y, 1, 1), np.delete(into, 1, 1))


def test_few_channels_plain():
    x, weights = _random(2, 4, 4, 20), _random(4, 4, 3, 20, seed=2)
    crops = [[1, 1], [1, 1]]
    y = bd.ops.conv_transpose(block(x), weights, strides=2, crops=crops, dst_layout="nhwc")
    np.testing.assert_allclose(y, _wanted(x, weights, 2, "SAME", [8, 8]), atol=1e-4)


def test_empty():
    weights = _random(3, 3, 16, 16)
    for shape in ([0, 1, 4, 4, 16], [2, 1, 0, 4, 16]):
        y = bd.ops.conv_transpose(np.zeros(shape, "float32"), weights, strides=2)
        assert y.shape == [shape[0], 1, 9 if shape[2] else 0, 9, 16]


@pytest.mark.parametrize("strides", [(200000, 1), (1, 17), (17, 1)])
def test_strides_are_bounded(strides):
    """Each phase along an axis is a convolution that is planned."""
    src = tf.zeros((1, 2, 5, 6, 16))
    with pytest.raises(tf.errors.InvalidArgumentError, match="strides of at most 16"):
        bd.ops.conv_transpose(src, tf.zeros((3, 3, 20, 20)), strides=strides)
