"""Gradient of matrix products: with z = a b + s c,

da = dz b^T,  db = a^T dz,  dc = s dz
"""

import tensorflow as tf

from ...ops.products.packed_matmul import packed_matmul
from ..chain import Chain
from ..node import is_wanted, split_inputs, text, vjp


@tf.RegisterGradient("BlockdnnPackedMatmul")
def _gradient(op, dy):
    transpose_a, transpose_b = op.get_attr("transpose_a"), op.get_attr("transpose_b")
    num_args, scale = op.get_attr("num_args"), op.get_attr("add_scale")
    (a, b), args, adds = split_inputs(op, 2, num_args, op.get_attr("num_adds"))
    n = op.outputs[0].shape[-1]
    if n is None:
        n = b.shape[0 if transpose_b else 1]
    chain = Chain.of(text(op, "post_ops"), n, "nhwc")
    backward = chain.backward(op.outputs[0], dy, args)
    if backward is None:

        def formula(a, b, *rest):
            z = _product(a, b, transpose_a, transpose_b)
            for c in rest[num_args:]:
                z = z + scale * c
            return chain.apply(z, rest[:num_args])

        return vjp(formula, op.inputs, dy)
    dz, dargs = backward
    da = db = None
    if is_wanted(op, 0):
        algorithm = text(op, "algorithm")
        da = packed_matmul(dz, b, transpose_b=not transpose_b, algorithm=algorithm)
        da = tf.transpose(da) if transpose_a else da
    if is_wanted(op, 1):
        left = a if transpose_a else tf.transpose(_rows(a))
        db = tf.matmul(_rows(dz), left, True, True) if transpose_b else tf.matmul(left, _rows(dz))
    dadds = [dz if scale == 1 else scale * dz for _ in adds]
    return [da, db, *dargs, *dadds]


def _rows(x):
    """[.., k] as [m, k]."""
    return x if x.shape.rank == 2 else tf.reshape(x, tf.stack([-1, tf.shape(x)[-1]]))


def _product(a, b, transpose_a: bool, transpose_b: bool):
    if a.shape.rank == 2:
        return tf.matmul(a, b, transpose_a, transpose_b)
    y = tf.matmul(_rows(a), b, transpose_b=transpose_b)
    return tf.reshape(y, tf.concat([tf.shape(a)[:-1], tf.shape(y)[-1:]], 0))
