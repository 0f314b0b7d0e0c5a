"""Gradient of convolutions."""

import math

import tensorflow as tf

from ..blocked import elements, part_of, place
from ..chain import Chain
from ..node import gradient_of, vjp
from ..planes import pooled
from .conv_data import backward_data, plane_of
from .conv_weights import backward_weights
from .geometry import ConvGeometry


@gradient_of("Conv")
def _gradient(called, dy):
    geometry, pool = ConvGeometry.of(called), called.pool
    shape, offset = geometry.weights_shape, called.weights_offset
    chain = Chain.of(called.post_ops, shape[-1], geometry.dst_layout)
    src_part, dst_part = called.src_part, called.dst_part
    src, weights, args, into = called.src, called.weights, called.args, called.into
    whole = offset == 0 and weights.shape.num_elements() == math.prod(shape)
    if whole and not (src_part or dst_part or into or pool):
        backward = chain.backward(called.dst, dy, args)
        if backward is not None:
            dz, dargs = backward
            return [*_both(called, geometry, src, weights, dz), *dargs]

    def formula(src, weights, *rest):
        z = geometry.forward(
            part_of(src, src_part, geometry.channels, called.src_blocks),
            elements(weights, offset, shape),
            scratchpad_mode=called.scratchpad_mode,
        )
        y = chain.apply(z, rest[: len(args)])
        if pool:
            y = pooled(y, "max", pool, pool, "VALID")
        return place(y, dst_part, shape[-1], rest[len(args) :])

    return vjp(formula, called.inputs, dy)


def _both(called, geometry: ConvGeometry, src, weights, dz) -> list:
    """The gradients of src and weights."""
    dsrc = dweights = None
    if called.wants("src"):
        filters = tf.reshape(weights, geometry.weights_shape)
        dsrc = backward_data(geometry, dz, filters, plane_of(src, geometry.src_layout))
    if called.wants("weights"):
        dweights = tf.reshape(backward_weights(geometry, src, dz), weights.shape)
    return [dsrc, dweights]
