"""The gradient of a convolution with respect to its weights: a matrix product a tap.

    dw[i] = sum over y of src[s y + d i - p]^T ddst[y]

TensorFlow multiplies the matrices, of plain tensors; its own op for all taps at once takes several
times as long (docs/experiments.md).
"""

import tensorflow as tf

from .geometry import ConvGeometry

# Products with fewer rows than this leave most of a register tile idle: all taps share one.
_MIN_ROWS = 16
# Planes beyond this many pixels are read in place, small ones are copied without their padding,
# which is a third of 16 x 16 pixels.
_MIN_PIXELS_IN_PLACE = 256


def backward_weights(geometry: ConvGeometry, src, dz):
    """The gradient of the weights, [kh, kw, channels / groups, output channels].

    Args:
      src, dz: the source and the gradient of the result, in their layouts.
    """
    src, dz = geometry.plain_src(src), geometry.plain_dst(dz)
    if geometry.is_depthwise and geometry.strides[0] == geometry.strides[1]:
        if geometry.dilations == (1, 1):
            return _depthwise(geometry, src, dz)
    if _fits_without_padding(geometry):
        taps = [_product(geometry, _every(src, geometry.strides), dz)]
    elif _reads_in_place(geometry, src):
        taps = _in_place(geometry, *_padded(geometry, src, dz), dz)
    else:
        taps = _copied(geometry, *_padded(geometry, src, dz), dz)
    return tf.reshape(tf.concat(taps, 0), geometry.weights_shape)


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
    return tf.reshape(dw, geometry.weights_shape)


def _fits_without_padding(geometry: ConvGeometry) -> bool:
    return geometry.weights_shape[:2] == (1, 1) and isinstance(geometry.padding, str)


def _reads_in_place(geometry: ConvGeometry, src) -> bool:
    height, width = src.shape[1:3]
    large = None not in (height, width) and height * width >= _MIN_PIXELS_IN_PLACE
    return (
        large
        and geometry.groups == 1
        and geometry.strides == (1, 1)
        and geometry.channels % _MIN_ROWS == 0  # slices start at cache lines, so need no copy
    )


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


def _in_place(geometry: ConvGeometry, padded, outs, dz):
    """With rows as wide as those of src, the pixels that a tap meets follow one another: dz gets
    zeros where src has padding, and every tap is a part of src that needs no copy."""
    height, width = tf.shape(padded)[1], tf.shape(padded)[2]
    around = [[0, 0], [0, height - outs[0]], [0, width - outs[1]], [0, 0]]
    rows = tf.reshape(tf.pad(dz, around), [-1, geometry.out_channels])
    pixels = tf.reshape(padded, [-1, geometry.channels])
    count, taps = tf.shape(pixels)[0], []
    for top, left in _taps(geometry):
        first = top * width + left
        product = tf.matmul(pixels[first:], rows[: count - first], transpose_a=True)
        taps.append(product[None])
    return taps


def _copied(geometry: ConvGeometry, padded, outs, dz):
    """The pixels that each tap meets, copied."""
    strides = geometry.strides
    spans = [(out - 1) * stride + 1 for out, stride in zip(outs, strides, strict=True)]
    met = [
        _every(padded[:, top : top + spans[0], left : left + spans[1]], strides)
        for top, left in _taps(geometry)
    ]
    if geometry.groups == 1 and geometry.channels < _MIN_ROWS:
        columns = tf.reshape(tf.concat(met, 3), [-1, len(met) * geometry.channels])
        rows = tf.reshape(dz, [-1, geometry.out_channels])
        return [tf.matmul(columns, rows, transpose_a=True)]
    return [_product(geometry, x, dz) for x in met]


def _product(geometry: ConvGeometry, src, dz):
    """dw of one tap: src [N, h, w, C] at the pixels that it meets, dz [N, h, w, O]."""
    groups, channels, outputs = geometry.groups, geometry.channels, geometry.out_channels
    if groups == 1:
        a, b = tf.reshape(src, [-1, channels]), tf.reshape(dz, [-1, outputs])
        return tf.matmul(a, b, transpose_a=True)[None]
    a = tf.reshape(src, [-1, groups, channels // groups])
    b = tf.reshape(dz, [-1, groups, outputs // groups])
    product = tf.einsum("pgi,pgo->igo", a, b)
    return tf.reshape(product, [1, channels // groups, outputs])
