"""Gradient of transposed convolutions.

A transposed convolution is linear in both inputs, and the adjoint, by its source, of the strided
convolution with the same filter: its own gradients are that convolution of ddst, and the gradient
of that convolution's weights with ddst for the source.
"""

import math

import tensorflow as tf

from ...layout import NCHW16C, NHWC
from ...ops.conv.conv_transpose import conv_transpose
from ..blocked import elements, part_of, place
from ..chain import Chain
from ..node import gradient_of, vjp
from .conv_weights import backward_weights
from .geometry import ConvGeometry


@gradient_of("ConvTranspose")
def _gradient(called, dy):
    shape, offset = called.weights_shape, called.weights_offset
    strides, crops = called.strides, called.crops
    src_part, dst_part = called.src_part, called.dst_part
    layout, channels = called.dst_layout, shape[2]
    chain = Chain.of(called.post_ops, channels, layout)
    src, weights, args, into = called.src, called.weights, called.args, called.into
    whole = offset == 0 and weights.shape.num_elements() == math.prod(shape)
    inside = max(crops[:2]) < shape[0] and max(crops[2:]) < shape[1]
    if whole and inside and not (src_part or dst_part or into):
        backward = chain.backward(called.dst, dy, args)
        if backward is not None:
            dz, dargs = backward
            return [*_both(called, src, weights, dz), *dargs]

    def formula(src, weights, *rest):
        filters = elements(weights, offset, shape)
        src = part_of(src, src_part, shape[3])
        z = _forward(src, filters, strides, crops, layout, inside, called.algorithm)
        return place(chain.apply(z, rest[: len(args)]), dst_part, channels, rest[len(args) :])

    return vjp(formula, called.inputs, dy)


def _both(called, src, weights, dz) -> list:
    """The gradients of src and weights."""
    top, bottom, left, right = called.crops
    layout = called.dst_layout
    axis = 1 if layout == NHWC else 2
    # Pixels that no source pixel reaches, and that the convolution therefore does not read.
    ends = [slice(None)] * axis + [slice(None, min(n, 0) or None) for n in (bottom, right)]
    dz = dz[tuple(ends)] if min(bottom, right) < 0 else dz
    geometry = ConvGeometry(
        weights_shape=tuple(called.weights_shape),
        groups=1,
        strides=tuple(called.strides),
        dilations=(1, 1),
        padding=[[top, max(bottom, 0)], [left, max(right, 0)]],
        src_layout=layout,
        dst_layout=NCHW16C,
        algorithm=called.algorithm,
    )
    filters = tf.reshape(weights, geometry.weights_shape)
    dsrc = geometry.forward(dz, filters) if called.wants("src") else None
    dweights = None
    if called.wants("weights"):
        dweights = tf.reshape(backward_weights(geometry, dz, src), weights.shape)
    return [dsrc, dweights]


def _forward(src, filters, strides, crops, layout: str, inside: bool, algorithm: str):
    """The transposed convolution by itself; crops beyond the filter's reach cut its result."""
    top, bottom, left, right = crops
    own = [[top, bottom], [left, right]] if inside else [[0, min(bottom, 0)], [0, min(right, 0)]]
    z = conv_transpose(
        src, filters, strides=strides, crops=own, dst_layout=layout, algorithm=algorithm
    )
    if inside:
        return z
    cuts = [slice(a, -b if b > 0 else None) for a, b in ((top, bottom), (left, right))]
    return z[(*[slice(None)] * (1 if layout == NHWC else 2), *cuts)]
