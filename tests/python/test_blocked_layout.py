"""python/layout.py says the same as the library."""

import pytest
import tensorflow as tf

import tf_blockdnn as bd
from tf_blockdnn.python import layout


@pytest.mark.parametrize("channels", [1, 15, 16, 17, 32, 33, 1000])
def test_blocked_shape(channels):
    there = bd.ops.reorder(tf.zeros((2, 3, 4, channels)), layout.NHWC, layout.NCHW16C)
    assert there.shape == layout.blocked_shape(2, channels, 3, 4)
    assert there.shape[1] == layout.num_blocks(channels)
    assert there.shape[4] == layout.BLOCK
