"""Gradient of the inner product."""

import math

import tensorflow as tf

from ...ops.products.inner_product import inner_product
from ..blocked import elements
from ..chain import Chain
from ..node import is_wanted, split_inputs, text, vjp


@tf.RegisterGradient("BlockdnnInnerProduct")
def _gradient(op, dy):
    shape, offset = op.get_attr("weights_shape"), op.get_attr("weights_offset")
    chain = Chain.of(text(op, "post_ops"), shape[-1], "nhwc")
    (src, weights), args = split_inputs(op, 2, op.get_attr("num_args"))
    if offset == 0 and weights.shape.num_elements() == math.prod(shape):
        backward = chain.backward(op.outputs[0], dy, args)
        if backward is not None:
            dz, dargs = backward
            return [*_products(op, src, weights, shape, dz), *dargs]

    def formula(src, weights, *args):
        z = inner_product(
            src,
            elements(weights, offset, shape),
            algorithm=text(op, "algorithm"),
            scratchpad_mode=text(op, "scratchpad_mode"),
        )
        return chain.apply(z, args)

    return vjp(formula, op.inputs, dy)


def _products(op, src, weights, shape, dz) -> list:
    """The gradients of src and weights."""
    dz = tf.reshape(dz, [-1, shape[1]])
    dsrc = dweights = None
    if is_wanted(op, 0):
        dsrc = tf.matmul(dz, tf.reshape(weights, shape), transpose_b=True)
        dsrc = tf.reshape(dsrc, tf.shape(src))
    if is_wanted(op, 1):
        dweights = tf.matmul(tf.reshape(src, [-1, shape[0]]), dz, transpose_a=True)
        dweights = tf.reshape(dweights, weights.shape)
    return [dsrc, dweights]
