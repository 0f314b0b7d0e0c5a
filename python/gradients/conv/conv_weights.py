"""The gradient of a convolution with respect to its weights.

    dw[i] = sum over y of src[s y + d i - p]^T ddst[y]

Our own op sums it where both tensors lie. Groups that are neither depthwise nor of whole blocks of
channels are TensorFlow's: a matrix product a tap, of plain tensors.
"""

import tensorflow as tf

from ...layout import BLOCK, NCHW16C
from ...native import library
from ...ops.arguments import padding_attrs
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
    src, dz = geometry.plain_src(src), geometry.plain_dst(dz)
    if geometry.is_depthwise and geometry.strides[0] == geometry.strides[1]:
        if geometry.dilations == (1, 1):
            return _depthwise(geometry, src, dz)
    taps = _copied(geometry, *_padded(geometry, src, dz), dz)
    return tf.reshape(tf.concat(taps, 0), geometry.weights_shape)


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


def _every(x, strides):
    return x if strides == (1, 1) else x[:, :: strides[0], :: strides[1]]


def _padded(geometry: ConvGeometry, src, dz):
    """(src with its padding, height and width of dz)."""
    shape, out = tf.shape(src), tf.shape(dz)
    paddings, outs = [], []
    for axis in range(2):
        size, count = src.shape[axis + 1], dz.shape[axis + 1]
        size = shape[axis + 1] if size is None else size
        count = out[axis + 1] if count is None else count
        before, after = geometry.paddings(size, count, axis)
        after = max(after, 0) if isinstance(after, int) else tf.maximum(after, 0)
        paddings.append([before, after])
        outs.append(count)
    if all(isinstance(p, int) and p == 0 for pair in paddings for p in pair):
        return src, outs
    return tf.pad(src, [[0, 0], *paddings, [0, 0]]), outs


def _taps(geometry: ConvGeometry):
    """(row, column) of the first pixel that each tap meets."""
    (kh, kw), (dh, dw) = geometry.weights_shape[:2], geometry.dilations
    return [(i * dh, j * dw) for i in range(kh) for j in range(kw)]


def _copied(geometry: ConvGeometry, padded, outs, dz):
    """The pixels that each tap meets, copied."""
    strides = geometry.strides
    spans = [(out - 1) * stride + 1 for out, stride in zip(outs, strides, strict=True)]
    met = [
        _every(padded[:, top : top + spans[0], left : left + spans[1]], strides)
        for top, left in _taps(geometry)
    ]
    return [_product(geometry, x, dz) for x in met]


def _product(geometry: ConvGeometry, src, dz):
    """dw of one tap: src [N, h, w, C] at the pixels that it meets, dz [N, h, w, O]."""
    groups, channels, outputs = geometry.groups, geometry.channels, geometry.out_channels
    a = tf.reshape(src, [-1, groups, channels // groups])
    b = tf.reshape(dz, [-1, groups, outputs // groups])
    product = tf.einsum("pgi,pgo->igo", a, b)
    return tf.reshape(product, [1, channels // groups, outputs])
