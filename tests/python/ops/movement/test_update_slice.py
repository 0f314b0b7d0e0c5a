"""Slices of tensors, written in their place."""

import numpy as np
import tensorflow as tf

import tf_blockdnn as bd


def test_on_several_threads():
    rng = np.random.default_rng(3)
    into, update = (rng.integers(0, 99, (300, n, 50), np.int32) for n in (40, 20))
    got = bd.ops.update_slice(into, update, [0, 7, 0])
    np.testing.assert_array_equal(got[:, 7:27], update)
    np.testing.assert_array_equal(np.delete(got, range(7, 27), 1), np.delete(into, range(7, 27), 1))


def test_scalars():
    assert bd.ops.update_slice(3.0, 5.0, np.zeros(0, np.int32)).numpy() == 5


def test_what_somebody_holds_stays():
    into = tf.zeros((3, 4))
    once = bd.ops.update_slice(into, tf.ones((1, 4)), [1, 0])
    twice = bd.ops.update_slice(once, tf.ones((1, 4)), [2, 0])
    assert [int(tf.reduce_sum(x)) for x in (into, once, twice)] == [0, 4, 8]
