"""Gradient of convolutions."""

import math

import tensorflow as tf

from ..blocked import elements, part_of, place
from ..chain import Chain
from ..node import is_wanted, split_inputs, text, vjp
from ..planes.pool import pooled
from .conv_data import backward_data, plane_of
from .conv_weights import backward_weights
from .geometry import ConvGeometry


@tf.RegisterGradient("BlockdnnConv")
def _gradient(op, dy):
    geometry, pool = ConvGeometry.of(op), op.get_attr("pool")
    shape, offset = geometry.weights_shape, op.get_attr("weights_offset")
    chain = Chain.of(text(op, "post_ops"), shape[-1], geometry.dst_layout)
    src_part, dst_part = op.get_attr("src_part"), op.get_attr("dst_part")
    num_args, num_into = op.get_attr("num_args"), op.get_attr("num_into")
    (src, weights), args, into = split_inputs(op, 2, num_args, num_into)
    whole = offset == 0 and weights.shape.num_elements() == math.prod(shape)
    if whole and not (src_part or dst_part or into or pool):
        backward = chain.backward(op.outputs[0], dy, args)
        if backward is not None:
            dz, dargs = backward
            return [*_both(op, geometry, src, weights, dz), *dargs]

    def formula(src, weights, *rest):
        z = geometry.forward(
            part_of(src, src_part, geometry.channels, op.get_attr("src_blocks")),
            elements(weights, offset, shape),
            scratchpad_mode=text(op, "scratchpad_mode"),
        )
        y = chain.apply(z, rest[:num_args])
        if pool:
            y = pooled(y, "max", pool, pool, "VALID")
        return place(y, dst_part, shape[-1], rest[num_args:])

    return vjp(formula, op.inputs, dy)


def _both(op, geometry: ConvGeometry, src, weights, dz) -> list:
    """The gradients of src and weights."""
    dsrc = dweights = None
    if is_wanted(op, 0):
        filters = tf.reshape(weights, geometry.weights_shape)
        dsrc = backward_data(geometry, dz, filters, plane_of(src, geometry.src_layout))
    if is_wanted(op, 1):
        dweights = tf.reshape(backward_weights(geometry, src, dz), weights.shape)
    return [dsrc, dweights]
