"""Tensors behind each other along any axis."""

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd


def _values(shape, axis, sizes, dtype):
    rng = np.random.default_rng(3)
    shapes = [[*shape] for _ in sizes]
    for one, size in zip(shapes, sizes, strict=True):
        one[axis] = size
    return [rng.integers(0, 2 if dtype == "bool" else 99, s).astype(dtype) for s in shapes]


@pytest.mark.parametrize(
    "shape, axis, sizes",
    [
        ((1, 1, 25), 1, (3000, 900, 300)),  # several threads, each value in pieces
        ((700, 1, 13), 2, (20, 4)),
        ((3001, 1), 1, (1, 0, 2, 3, 17, 9, 20)),  # short rows, on several threads
        ((300, 1), 1, (900, 300)),  # longer ones, cut anywhere
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["float32", "bool"])
def test_on_several_threads(shape, axis, sizes, dtype):
    values = _values(shape, axis, sizes, dtype)
    np.testing.assert_array_equal(bd.ops.join(values, axis=axis), np.concatenate(values, axis))


def test_sizes_that_a_graph_does_not_know():
    signature = [tf.TensorSpec([None, 2]), tf.TensorSpec(None), tf.TensorSpec([None, None])]
    run = tf.function(lambda *values: bd.ops.join(values, axis=0), input_signature=signature)
    assert run.get_concrete_function().structured_outputs.shape.as_list() == [None, 2]
    values = _values((1, 2), 0, (3, 1, 4), "float32")
    np.testing.assert_array_equal(run(*values), np.concatenate(values))
