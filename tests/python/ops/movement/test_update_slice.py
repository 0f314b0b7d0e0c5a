"""Slices of tensors, written in their place."""

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd


def _expected(into, update, start, at=()):
    result = into.copy()
    whole = result[(slice(None), *at)] if at else result
    first = [
        min(max(int(at), 0), all - count)
        for at, all, count in zip(start, whole.shape, update.shape, strict=True)
    ]
    whole[tuple(slice(f, f + c) for f, c in zip(first, update.shape, strict=True))] = update
    return result


@pytest.mark.parametrize(
    "into, update, start, at",
    [
        ((2, 3, 2, 9, 4, 5), (2, 1, 4, 5), (0, 6, 0, 0), (1, 1)),
        ((2, 3, 9, 4), (2, 3, 4), (0, 2, 0), (2,)),
        ((2, 9), (2, 1), (0, 8), ()),
        ((5, 6, 7), (2, 3, 4), (1, 2, 3), ()),
        ((5, 6, 7), (5, 6, 7), (0, 0, 0), ()),
        ((5, 6, 7), (2, 3, 4), (9, -2, 4), ()),  # moved into the tensor
        ((4,), (0,), (2,), ()),
        ((0, 3), (0, 2), (0, 1), ()),
        ((300, 40, 50), (300, 20, 50), (0, 7, 0), ()),
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["float32", "int32", "float16", "int8", "bool"])
def test_against_numpy(into, update, start, at, dtype):
    rng = np.random.default_rng(3)
    into, update = (
        rng.integers(0, 2 if dtype == "bool" else 99, s).astype(dtype) for s in (into, update)
    )
    expected = _expected(into, update, start, at)
    for index in (np.int32, np.int64):
        got = bd.ops.update_slice(into, update, np.array(start, index), at=at)
        np.testing.assert_array_equal(got, expected)
    run = tf.function(lambda x, y, s: bd.ops.update_slice(x, y, s, at=at))
    np.testing.assert_array_equal(run(into, update, np.array(start, np.int32)), expected)


def test_scalars():
    assert bd.ops.update_slice(3.0, 5.0, np.zeros(0, np.int32)).numpy() == 5


def test_what_somebody_holds_stays():
    into = tf.zeros((3, 4))
    once = bd.ops.update_slice(into, tf.ones((1, 4)), [1, 0])
    twice = bd.ops.update_slice(once, tf.ones((1, 4)), [2, 0])
    assert [int(tf.reduce_sum(x)) for x in (into, once, twice)] == [0, 4, 8]
