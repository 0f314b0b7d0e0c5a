"""bd.ops.packed_matmul against numpy."""

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd
from tf_blockdnn.python.ops.products.rnn import pack_count

pytestmark = pytest.mark.each_isa


@pytest.mark.parametrize(
    "m, k, n", [(1, 1, 1), (1, 300, 70), (4, 17, 33), (64, 65, 16), (97, 5, 130)]
)
@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_integers_are_exact(integers, m, k, n, transpose_a, transpose_b):
    a, b, c = integers(m, k), integers(k, n), integers(m, n)
    turns = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    left, right = a.T.copy() if transpose_a else a, b.T.copy() if transpose_b else b
    np.testing.assert_array_equal(bd.ops.packed_matmul(left, right, **turns), a @ b)
    np.testing.assert_array_equal(
        bd.ops.packed_matmul(left, right, c, alpha=2, beta=4, **turns), 2 * (a @ b) + 4 * c
    )
    np.testing.assert_array_equal(
        bd.ops.packed_matmul(left, right, c, alpha=-0.5, beta=1.5, **turns), 1.5 * c - 0.5 * (a @ b)
    )


def test_any_rank_and_empty(floats):
    a, b = floats(2, 3, 4, 5), floats(5, 6)
    np.testing.assert_allclose(bd.ops.packed_matmul(a, b), a @ b, rtol=1e-5, atol=1e-5)
    assert bd.ops.packed_matmul(a[:0], b).shape == (0, 3, 4, 6)
    np.testing.assert_array_equal(bd.ops.packed_matmul(a[..., :0], b[:0]), np.zeros((2, 3, 4, 6)))


@pytest.mark.parametrize("constant, packs", [(True, 1), (False, 2)])
def test_packs_once(floats, constant, packs):
    a, b = tf.constant(floats(3, 8)), tf.Variable(floats(8, 40))

    @tf.function
    def product(a):
        return bd.ops.packed_matmul(a, b, how="constant" * constant)

    before = pack_count()
    for _ in range(5):
        first = product(a)
    assert pack_count() - before == packs
    b.assign(2 * b)
    np.testing.assert_allclose(product(a), 2 * first, rtol=1e-6)
