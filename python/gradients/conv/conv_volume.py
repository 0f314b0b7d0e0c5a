"""Gradient of 3-D convolutions.

    dst[z] = sum over taps i of conv(src[s z + i - p], w[i])    along the depth, slices being images

so the gradient of w[i] is that of a 2-D convolution's weights, of the slices that tap i reads. With
stride 1 the gradient of src is a 3-D convolution of ddst with the flipped filter, channels
exchanged; with others it is TensorFlow's.
"""

import tensorflow as tf

from ...layout import NCHW16C, NHWC
from ...ops.conv.conv_volume import conv_volume
from ...ops.movement.reorder import reorder
from ..blocked import slices, volumes
from ..chain import Chain, by_src_and_weights, through_chain
from ..node import gradient_of, vjp
from .conv_weights import backward_weights
from .geometry import ConvGeometry


@gradient_of("ConvVolume")
def _gradient(called, dy):
    src = called.src

    def forward(src, filters):
        return _by_tensorflow(called, src, filters)

    def backward(dz) -> list:
        return by_src_and_weights(
            called,
            lambda: _of_src(called, src, called.weights, dz),
            lambda: _of_weights(called, src, dz),
        )

    chain = Chain.of(called.post_ops, called.weights_shape[-1], called.dst_layout)
    return through_chain(called, dy, chain, forward, backward)


def _by_tensorflow(called, src, filters):
    """The convolution itself in TensorFlow's ops."""
    shape, src_layout, dst_layout = filters.shape, called.src_layout, called.dst_layout
    x = src
    if src_layout == NCHW16C:
        x = reorder(x, NCHW16C, NHWC, channels=shape[3])
    y = slices(
        tf.nn.conv3d(volumes(x, called.depth), filters, [1, *called.strides, 1], called.padding)
    )
    return reorder(y, NHWC, NCHW16C) if dst_layout == NCHW16C else y


def _out_depth(called) -> int:
    kernel, stride = called.weights_shape[0], called.strides[0]
    reach = 0 if called.padding == "SAME" else kernel - 1
    return -(-(called.depth - reach) // stride)


def _of_src(called, src, weights, dz):
    shape, padding = called.weights_shape, called.padding
    kernel = shape[:3]
    filters = tf.reshape(weights, shape)
    odd = all(k % 2 for k in kernel)
    if list(called.strides) != [1, 1, 1] or (padding == "SAME" and not odd):
        return vjp(lambda x: _by_tensorflow(called, x, filters), [src], dz)[0]
    flipped = tf.transpose(tf.reverse(filters, [0, 1, 2]), [0, 1, 2, 4, 3])
    src_layout, dst_layout = called.src_layout, called.dst_layout
    depth = _out_depth(called)
    if padding == "VALID" and max(kernel) > 1:
        plane = [[k - 1, k - 1] for k in kernel[1:]]
        plane = [*plane, [0, 0]] if dst_layout == NHWC else [[0, 0], *plane, [0, 0]]
        around = [[0, 0], [kernel[0] - 1] * 2, *plane]
        dz = slices(tf.pad(volumes(dz, depth), around))
        depth += 2 * (kernel[0] - 1)
    return conv_volume(
        dz,
        flipped,
        depth=depth,
        padding=padding,
        how=called.algorithm,
        src_layout=dst_layout,
        dst_layout=src_layout,
    )


def _of_weights(called, src, dz):
    shape, strides = called.weights_shape, called.strides
    depth, outs, stride = called.depth, _out_depth(called), strides[0]
    geometry = ConvGeometry(
        weights_shape=tuple(shape[1:]),
        groups=1,
        strides=tuple(strides[1:]),
        dilations=(1, 1),
        padding=called.padding,
        src_layout=called.src_layout,
        dst_layout=called.dst_layout,
        algorithm=called.algorithm,
    )
    before = 0
    if geometry.padding == "SAME":
        before = max((outs - 1) * stride + shape[0] - depth, 0) // 2
    x, y = volumes(src, depth), volumes(dz, outs)
    taps = []
    for tap in range(shape[0]):
        shift = tap - before  # tap reads slice stride * z + shift
        first = max(0, -(shift // stride))
        last = min(outs - 1, (depth - 1 - shift) // stride)
        if last < first:
            taps.append(tf.zeros(shape[1:], src.dtype))
            continue
        begin = stride * first + shift
        read = x[:, begin : stride * last + shift + 1 : stride]
        taps.append(backward_weights(geometry, slices(read), slices(y[:, first : last + 1])))
    return tf.stack(taps)
