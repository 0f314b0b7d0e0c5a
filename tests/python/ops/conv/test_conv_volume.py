"""bd.ops.conv_volume against tf.nn.conv3d."""

import numpy as np
import pytest
import tensorflow as tf
from blocked_numpy import Blocked

import tf_blockdnn as bd


def _random(*shape, seed=1):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def _slices(x):
    return np.reshape(x, (-1, *np.shape(x)[2:]))


@pytest.mark.each_isa
@pytest.mark.parametrize("channels", [(16, 32), (1, 20), (24, 3)], ids=str)
@pytest.mark.parametrize("strides", [(1, 1, 1), (2, 2, 2), (1, 2, 3)], ids=str)
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_windows(padding, strides, channels):
    ic, oc = channels
    x, weights = _random(2, 5, 6, 7, ic), _random(3, 3, 2, ic, oc, seed=2)
    wanted = _slices(tf.nn.conv3d(x, weights, [1, *strides, 1], padding))
    options = {"depth": 5, "strides": strides, "padding": padding}
    y = bd.ops.conv_volume(Blocked.pack(_slices(x)), weights, **options)
    np.testing.assert_allclose(Blocked.unpack(y, oc), wanted, atol=2e-4)
    y = bd.ops.conv_volume(_slices(x), weights, src_layout="nhwc", dst_layout="nhwc", **options)
    np.testing.assert_allclose(y, wanted, atol=2e-4)


def test_chain_of_tensors():
    """Each volume adds its own part of an operand."""
    x, weights = _random(3, 4, 5, 5, 16), _random(3, 3, 3, 16, 16, seed=2)
    other, bias = _random(3, 4, 5, 5, 16, seed=3), _random(16, seed=4)
    chain = bd.PostOps().binary("add", bias).sum(operand=Blocked.pack(_slices(other)))
    y = bd.ops.conv_volume(
        Blocked.pack(_slices(x)), weights, depth=4, post_ops=chain.eltwise("relu"), padding="SAME"
    )
    wanted = tf.nn.relu(tf.nn.conv3d(x, weights, [1] * 5, "SAME") + bias + other)
    np.testing.assert_allclose(Blocked.unpack(y, 16), _slices(wanted), atol=2e-4)


def test_empty():
    weights = _random(3, 3, 3, 16, 16)
    y = bd.ops.conv_volume(np.zeros((0, 1, 4, 4, 16), "float32"), weights, depth=4, padding="SAME")
    assert y.shape == [0, 1, 4, 4, 16]
