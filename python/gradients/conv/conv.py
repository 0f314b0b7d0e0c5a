"""Gradient of convolutions."""

import math

import tensorflow as tf

from ...ops.movement.reorder import reorder
from ..blocked import elements, part_of, place
from ..chain import Chain
from ..node import gradient_of, vjp
from ..planes import pooled
from .conv_data import backward_data, is_transposed, plane_of
from .conv_weights import backward_weights
from .geometry import ConvGeometry


@gradient_of("Conv", sources=(tf.bfloat16,))
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
    """The gradients of src and weights.

    Of a source of bfloat16 the products of both are of numbers rounded to bfloat16, too, added up
    as float32, and the gradient of the weights is float32 as they are.
    """
    dsrc, dweights, kind = None, None, src.dtype
    if kind == tf.bfloat16:
        layout, channels = geometry.dst_layout, geometry.out_channels
        rounded = reorder(dz, layout, layout, channels=channels, dtype=kind)
        dz = tf.cast(rounded, tf.float32)
    if called.wants("src"):
        filters = tf.reshape(weights, geometry.weights_shape)
        usual = kind == tf.float32 or is_transposed(geometry)
        plane = plane_of(src, geometry.src_layout)
        dsrc = tf.cast(backward_data(geometry, dz if usual else rounded, filters, plane), kind)
    if called.wants("weights"):
        dweights = backward_weights(geometry, tf.cast(src, tf.float32), dz)
        dweights = tf.reshape(dweights, weights.shape)
    return [dsrc, dweights]
