"""Gradient of transposed convolutions.

A transposed convolution is linear in both inputs, and the adjoint, by its source, of the strided
convolution with the same filter: its own gradients are that convolution of ddst, and the gradient
of that convolution's weights with ddst for the source.
"""

import tensorflow as tf

from ...layout import NCHW16C, NHWC
from ...ops.conv.conv_transpose import conv_transpose
from ..chain import Chain, by_src_and_weights, through_chain
from ..node import gradient_of
from .conv_weights import backward_weights
from .geometry import ConvGeometry


@gradient_of("ConvTranspose")
def _gradient(called, dy):
    shape, strides, crops = called.weights_shape, called.strides, called.crops
    layout = called.dst_layout
    inside = max(crops[:2]) < shape[0] and max(crops[2:]) < shape[1]

    def forward(src, filters, *_):
        return _forward(src, filters, strides, crops, layout, inside, called.algorithm)

    def backward(dz) -> list:
        return _both(called, dz)

    chain = Chain.of(called.post_ops, shape[2], layout)
    return through_chain(called, dy, chain, forward, backward, shape[3], inside)


def _both(called, dz) -> list:
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
    return by_src_and_weights(
        called,
        lambda: geometry.forward(dz, tf.reshape(called.weights, geometry.weights_shape)),
        lambda: backward_weights(geometry, dz, called.src),
    )


def _forward(src, filters, strides, crops, layout: str, inside: bool, algorithm: str):
    """The transposed convolution by itself; crops beyond the filter's reach cut its result."""
    top, bottom, left, right = crops
    within = [[top, bottom], [left, right]] if inside else [[0, min(bottom, 0)], [0, min(right, 0)]]
    z = conv_transpose(
        src, filters, strides=strides, crops=within, dst_layout=layout, how=algorithm
    )
    if inside:
        return z
    cuts = [slice(a, -b if b > 0 else None) for a, b in ((top, bottom), (left, right))]
    return z[(*[slice(None)] * (1 if layout == NHWC else 2), *cuts)]
