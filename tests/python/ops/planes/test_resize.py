"""bd.ops.resize against TensorFlow's ops."""

import numpy as np
import pytest
import tensorflow as tf
from blocked_numpy import Blocked

import tf_blockdnn as bd

block, unblock = Blocked.pack, Blocked.unpack
_OPS = {"nearest": tf.raw_ops.ResizeNearestNeighbor, "bilinear": tf.raw_ops.ResizeBilinear}


def _random(*shape, seed=1):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def _wanted(x, kind, size, coordinates="half_pixel"):
    return _OPS[kind](
        images=x,
        size=size,
        half_pixel_centers=coordinates == "half_pixel",
        align_corners=coordinates == "align_corners",
    )


@pytest.mark.each_isa
@pytest.mark.parametrize("coordinates", ["half_pixel", "asymmetric", "align_corners"])
@pytest.mark.parametrize("kind", _OPS)
@pytest.mark.parametrize("size", [(10, 14), (5, 7), (1, 1), (13, 3), (20, 21)], ids=str)
def test_sizes(size, kind, coordinates):
    x = _random(2, 5, 7, 20)
    y = bd.ops.resize(block(x), kind, channels=20, size=list(size), coordinates=coordinates)
    wanted = _wanted(x, kind, size, coordinates)
    np.testing.assert_allclose(unblock(y, 20), wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", _OPS)
def test_scales_of_parts(kind):
    x, into = _random(2, 3, 4, 48), block(_random(2, 6, 12, 40, seed=2))
    y = bd.ops.resize(
        block(x), kind, channels=16, scales=[2, 3], src_part=(32, 48), dst_part=(16, 40), into=into
    )
    wanted = _wanted(x[..., 32:], kind, [6, 12])
    np.testing.assert_allclose(unblock(y, 40)[..., 16:32], wanted, atol=1e-6)
    np.testing.assert_array_equal(np.delete(y, 1, 1), np.delete(into, 1, 1))
