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
from ..node import is_wanted, split_inputs, text, vjp
from .conv_weights import backward_weights
from .geometry import ConvGeometry


@tf.RegisterGradient("BlockdnnConvTranspose")
def _gradient(op, dy):
    shape, offset = op.get_attr("weights_shape"), op.get_attr("weights_offset")
    strides, crops = op.get_attr("strides"), op.get_attr("crops")
    src_part, dst_part = op.get_attr("src_part"), op.get_attr("dst_part")
    num_args = op.get_attr("num_args")
    layout, channels = text(op, "dst_layout"), shape[2]
    chain = Chain.of(text(op, "post_ops"), channels, layout)
    (src, weights), args, into = split_inputs(op, 2, num_args, op.get_attr("num_into"))
    whole = offset == 0 and weights.shape.num_elements() == math.prod(shape)
    inside = max(crops[:2]) < shape[0] and max(crops[2:]) < shape[1]
    if whole and inside and not (src_part or dst_part or into):
        backward = chain.backward(op.outputs[0], dy, args)
        if backward is not None:
            dz, dargs = backward
            return [*_both(op, src, weights, dz), *dargs]

    def formula(src, weights, *rest):
        filters = elements(weights, offset, shape)
        src = part_of(src, src_part, shape[3])
        z = _forward(src, filters, strides, crops, layout, inside, text(op, "algorithm"))
        return place(chain.apply(z, rest[:num_args]), dst_part, channels, rest[num_args:])

    return vjp(formula, op.inputs, dy)


def _both(op, src, weights, dz) -> list:
    """The gradients of src and weights."""
    top, bottom, left, right = op.get_attr("crops")
    layout = text(op, "dst_layout")
    axis = 1 if layout == NHWC else 2
    # Pixels that no source pixel reaches, and that the convolution therefore does not read.
    ends = [slice(None)] * axis + [slice(None, min(n, 0) or None) for n in (bottom, right)]
    dz = dz[tuple(ends)] if min(bottom, right) < 0 else dz
    geometry = ConvGeometry(
        weights_shape=tuple(op.get_attr("weights_shape")),
        groups=1,
        strides=tuple(op.get_attr("strides")),
        dilations=(1, 1),
        padding=[[top, max(bottom, 0)], [left, max(right, 0)]],
        src_layout=layout,
        dst_layout=NCHW16C,
        algorithm=text(op, "algorithm"),
    )
    filters = tf.reshape(weights, geometry.weights_shape)
    dsrc = geometry.forward(dz, filters) if is_wanted(op, 0) else None
    dweights = None
    if is_wanted(op, 1):
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
