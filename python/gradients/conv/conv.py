"""Gradient of convolutions."""

import tensorflow as tf

from ...ops.movement.reorder import reorder
from ..chain import Chain, by_src_and_weights, through_chain
from ..node import gradient_of
from .conv_data import backward_data, is_transposed, plane_of
from .conv_weights import backward_weights
from .geometry import ConvGeometry


@gradient_of("Conv", sources=(tf.bfloat16,))
def _gradient(called, dy):
    geometry = ConvGeometry.of(called)
    chain = Chain.of(called.post_ops, geometry.out_channels, geometry.dst_layout)

    def forward(src, weights, *_):
        return geometry.forward(src, weights, called.scratchpad_mode)

    def backward(dz) -> list:
        return _both(called, geometry, called.src, called.weights, dz)

    return through_chain(called, dy, chain, forward, backward, geometry.channels)


def _both(called, geometry: ConvGeometry, src, weights, dz) -> list:
    """The gradients of src and weights.

    Of a source of bfloat16 the products of both are of numbers rounded to bfloat16, too, added up
    as float32, and the gradient of the weights is float32 as they are.
    """
    kind, rounded = src.dtype, dz
    if kind == tf.bfloat16:
        layout, channels = geometry.dst_layout, geometry.out_channels
        rounded = reorder(dz, layout, layout, channels=channels, dtype=kind)
        dz = tf.cast(rounded, tf.float32)

    def of_src():
        filters = tf.reshape(weights, geometry.weights_shape)
        y = dz if is_transposed(geometry) else rounded
        plane = plane_of(src, geometry.src_layout)
        return tf.cast(backward_data(geometry, y, filters, plane), kind)

    return by_src_and_weights(
        called, of_src, lambda: backward_weights(geometry, tf.cast(src, tf.float32), dz)
    )
