"""The gradient of a convolution with respect to its weights.

    dw[i] = sum over y of src[s y + d i - p]^T ddst[y]

Our own op sums it where both tensors lie. Groups that are neither depthwise nor of whole blocks of
channels are convolutions of their own, of plain tensors.
"""

from dataclasses import replace

import tensorflow as tf

from ...layout import BLOCK, NCHW16C, NHWC
from ...native import library
from ...ops.arguments import padding_attrs
from ...ops.movement.reorder import reorder
from ..node import gradient_of
from .conv_data import backward_data, plane_of
from .geometry import ConvGeometry


def backward_weights(geometry: ConvGeometry, src, dz):
    """The gradient of the weights, [kh, kw, channels / groups, output channels].

    Args:
      src, dz: the source and the gradient of the result, in their layouts.
    """
    if _has_kernel(geometry):
        return library().blockdnn_conv_backward_weights(
            src,
            dz,
            src_layout=geometry.src_layout,
            dst_layout=geometry.dst_layout,
            channels=geometry.channels,
            weights_shape=list(geometry.weights_shape),
            groups=geometry.groups,
            strides=list(geometry.strides),
            dilations=list(geometry.dilations),
            algorithm=geometry.algorithm,
            **padding_attrs(geometry.padding),
        )
    if geometry.src_layout == NCHW16C:
        src = reorder(src, NCHW16C, NHWC, channels=geometry.channels)
    if geometry.dst_layout == NCHW16C:
        dz = reorder(dz, NCHW16C, NHWC, channels=geometry.out_channels)
    usual = geometry.dilations == (1, 1) and geometry.strides[0] == geometry.strides[1]
    if usual and geometry.weights_shape[2] == 1:
        return _depthwise(geometry, src, dz)
    groups = geometry.groups
    shape = (*geometry.weights_shape[:3], geometry.out_channels // groups)
    single = replace(geometry, weights_shape=shape, groups=1, src_layout=NHWC, dst_layout=NHWC)
    pairs = zip(tf.split(src, groups, 3), tf.split(dz, groups, 3), strict=True)
    return tf.concat([backward_weights(single, *pair) for pair in pairs], 3)


def _has_kernel(geometry: ConvGeometry) -> bool:
    """What MakeBackwardWeightsPlan plans."""
    if geometry.groups == 1:
        return True
    if not geometry.src_layout == geometry.dst_layout == NCHW16C:
        return False
    inputs, groups = geometry.weights_shape[2], geometry.groups
    outputs = geometry.out_channels // groups
    return inputs == outputs == 1 or (inputs % BLOCK == 0 and outputs % BLOCK == 0)


@gradient_of("ConvBackwardWeights")
def _gradient(called, ddweights):
    """Linear in both: the convolution's own formulas, with ddweights for the weights."""
    geometry = ConvGeometry.of(called)
    src, ddst = called.inputs
    dsrc = dddst = None
    if called.wants("src"):
        dsrc = backward_data(geometry, ddst, ddweights, plane_of(src, geometry.src_layout))
    if called.wants("ddst"):
        dddst = geometry.forward(src, ddweights)
    return [dsrc, dddst]


def _depthwise(geometry: ConvGeometry, src, dz):
    """TensorFlow's kernel, which has one stride for both axes and no dilations."""
    padding = geometry.padding
    if not isinstance(padding, str):
        src, padding = tf.pad(src, [[0, 0], *padding, [0, 0]]), "VALID"
    multiplier = geometry.out_channels // geometry.channels
    dw = tf.raw_ops.DepthwiseConv2dNativeBackpropFilter(
        input=src,
        filter_sizes=[*geometry.weights_shape[:2], geometry.channels, multiplier],
        out_backprop=dz,
        strides=[1, *geometry.strides, 1],
        padding=padding,
    )
    dw = tf.where(tf.equal(tf.size(dz), 0), tf.zeros_like(dw), dw)  # of nothing it is undefined
    return tf.reshape(dw, geometry.weights_shape)
