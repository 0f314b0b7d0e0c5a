"""The gradient of a convolution with respect to its weights: TensorFlow's, on plain tensors.

dw[i] = sum over y of src[s y + d i - p]^T ddst[y]
"""

import tensorflow as tf

from .geometry import ConvGeometry


def backward_weights(geometry: ConvGeometry, src, dz):
    """The gradient of the weights, [kh, kw, channels / groups, output channels].

    Args:
      src, dz: the source and the gradient of the result, in their layouts.
    """
    src, dz = geometry.plain_src(src), geometry.plain_dst(dz)
    strides, dilated = geometry.strides, geometry.dilations != (1, 1)
    window = geometry.weights_shape[:2]
    if window == (1, 1) and geometry.padding in ("SAME", "VALID") and geometry.groups == 1:
        return _product(geometry, src[:, :: strides[0], :: strides[1]], dz)
    if dilated or (geometry.groups > 1 and not _as_depthwise(geometry)):
        return _by_taps(geometry, src, dz)
    padding = geometry.padding
    if not isinstance(padding, str):
        src, padding = tf.pad(src, [[0, 0], *padding, [0, 0]]), "VALID"
    common = dict(input=src, out_backprop=dz, strides=[1, *strides, 1], padding=padding)
    if geometry.groups == 1:
        return tf.raw_ops.Conv2DBackpropFilter(filter_sizes=geometry.weights_shape, **common)
    per_channel = geometry.out_channels // geometry.channels
    dw = tf.raw_ops.DepthwiseConv2dNativeBackpropFilter(
        filter_sizes=[*window, geometry.channels, per_channel], **common
    )
    return tf.reshape(dw, geometry.weights_shape)


def _as_depthwise(geometry: ConvGeometry) -> bool:
    """Whether TensorFlow has a kernel for it: strides of both axes have to be equal there."""
    return geometry.is_depthwise and geometry.strides[0] == geometry.strides[1]


def _product(geometry: ConvGeometry, src, dz):
    """dw of one tap: src [N, h, w, C] at the pixels that it meets, dz [N, h, w, O]."""
    groups, channels, outputs = geometry.groups, geometry.channels, geometry.out_channels
    if groups == 1:
        a, b = tf.reshape(src, [-1, channels]), tf.reshape(dz, [-1, outputs])
        return tf.reshape(tf.matmul(a, b, transpose_a=True), [1, 1, channels, outputs])
    a = tf.reshape(src, [-1, groups, channels // groups])
    b = tf.reshape(dz, [-1, groups, outputs // groups])
    product = tf.einsum("pgi,pgo->igo", a, b)
    return tf.reshape(product, [1, 1, channels // groups, outputs])


def _by_taps(geometry: ConvGeometry, src, dz):
    """Groups and dilations, which TensorFlow's kernels lack: a product a tap."""
    shape, out = tf.shape(src), tf.shape(dz)
    paddings, lengths = [], []
    for axis in range(2):
        size, outs = src.shape[axis + 1], dz.shape[axis + 1]
        size, outs = size or shape[axis + 1], outs or out[axis + 1]
        before, after = geometry.paddings(size, outs, axis)
        paddings.append([before, tf.maximum(after, 0)])
        lengths.append((outs - 1) * geometry.strides[axis] + 1)
    padded = tf.pad(src, [[0, 0], *paddings, [0, 0]])
    taps = []
    (kh, kw), (dh, dw), (sh, sw) = geometry.weights_shape[:2], geometry.dilations, geometry.strides
    for i in range(kh):
        for j in range(kw):
            top, left = i * dh, j * dw
            met = padded[:, top : top + lengths[0] : sh, left : left + lengths[1] : sw]
            taps.append(_product(geometry, met, dz))
    return tf.reshape(tf.concat(taps, 0), geometry.weights_shape)
