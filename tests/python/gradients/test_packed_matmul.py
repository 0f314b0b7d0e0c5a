"""Gradients of matrix products, against those of the plain formula in float64."""

import pytest
import tensorflow as tf
from checked import check

import tf_blockdnn as bd

# Shapes of a and b, and arguments.
CASES = {
    "plain": ((5, 7), (7, 20), {}),
    "a transposed": ((7, 5), (7, 20), {"transpose_a": True}),
    "b transposed": ((5, 7), (20, 7), {"transpose_b": True}),
    "both": ((7, 5), (20, 7), {"transpose_a": True, "transpose_b": True}),
    "many rows": ((2, 3, 7), (20, 7), {"transpose_b": True, "alpha": 0.5}),
}


@pytest.mark.parametrize("function", ["tanh", "softplus"])  # told by the result, and not
@pytest.mark.parametrize("case", CASES)
def test_products(case, function, floats):
    """With a bias, a second sum and an activation."""
    a, b, options = CASES[case]
    rows = a[:-1] if not options.get("transpose_a") else (a[1],)
    alpha = options.get("alpha", 1.0)

    def ours(a, b, c, bias):
        chain = bd.PostOps().binary("add", bias)
        chain = chain.eltwise({"softplus": "soft_relu"}.get(function, function))
        return bd.ops.packed_matmul(a, b, c, beta=0.25, post_ops=chain, **options)

    def formula(a, b, c, bias):
        a = tf.transpose(a) if options.get("transpose_a") else a
        b = tf.transpose(b) if options.get("transpose_b") else b
        z = alpha * tf.einsum("...k,kn->...n", a, b) + 0.25 * c + bias
        return getattr(tf.math, function)(z)

    check(ours, formula, [floats(*a), floats(*b), floats(*rows, 20), floats(20)])
