"""Gradient of 3-D convolutions.

    dst[z] = sum over taps i of conv(src[s z + i - p], w[i])    along the depth, slices being images

so the gradient of w[i] is that of a 2-D convolution's weights, of the slices that tap i reads. With
stride 1 the gradient of src is a 3-D convolution of ddst with the flipped filter, channels
exchanged; with others it is TensorFlow's.
"""

import math

import tensorflow as tf

from ...layout import NCHW16C, NHWC
from ...ops.conv.conv_volume import conv_volume
from ...ops.movement.reorder import reorder
from ..blocked import elements
from ..chain import Chain
from ..node import is_wanted, split_inputs, text, vjp
from .conv_weights import backward_weights
from .geometry import ConvGeometry


@tf.RegisterGradient("BlockdnnConvVolume")
def _gradient(op, dy):
    shape, offset = op.get_attr("weights_shape"), op.get_attr("weights_offset")
    dst_layout = text(op, "dst_layout")
    chain = Chain.of(text(op, "post_ops"), shape[-1], dst_layout)
    (src, weights), args = split_inputs(op, 2, op.get_attr("num_args"))
    if offset == 0 and weights.shape.num_elements() == math.prod(shape):
        backward = chain.backward(op.outputs[0], dy, args)
        if backward is not None:
            dz, dargs = backward
            dsrc = _of_src(op, src, weights, dz) if is_wanted(op, 0) else None
            dweights = _of_weights(op, src, dz) if is_wanted(op, 1) else None
            if dweights is not None:
                dweights = tf.reshape(dweights, weights.shape)
            return [dsrc, dweights, *dargs]

    def formula(src, weights, *args):
        return chain.apply(_by_tensorflow(op, src, elements(weights, offset, shape)), args)

    return vjp(formula, op.inputs, dy)


def _by_tensorflow(op, src, filters):
    """The convolution itself in TensorFlow's ops."""
    shape, src_layout, dst_layout = filters.shape, text(op, "src_layout"), text(op, "dst_layout")
    x = src
    if src_layout == NCHW16C:
        x = reorder(x, NCHW16C, NHWC, channels=shape[3])
    sizes = tf.shape(x)
    x = tf.reshape(x, tf.stack([-1, op.get_attr("depth"), sizes[1], sizes[2], shape[3]]))
    y = tf.nn.conv3d(x, filters, [1, *op.get_attr("strides"), 1], text(op, "padding"))
    sizes = tf.shape(y)
    y = tf.reshape(y, tf.stack([-1, sizes[2], sizes[3], shape[-1]]))
    return reorder(y, NHWC, NCHW16C) if dst_layout == NCHW16C else y


def _out_depth(op) -> int:
    kernel, stride = op.get_attr("weights_shape")[0], op.get_attr("strides")[0]
    reach = 0 if text(op, "padding") == "SAME" else kernel - 1
    return -(-(op.get_attr("depth") - reach) // stride)


def _volumes(slices, depth: int):
    """[volumes, depth, ..] of slices."""
    shape = tf.shape(slices)
    y = tf.reshape(slices, tf.concat([[-1, depth], shape[1:]], 0))
    y.set_shape([None, depth, *slices.shape[1:]])
    return y


def _slices(volumes):
    shape = tf.shape(volumes)
    y = tf.reshape(volumes, tf.concat([[-1], shape[2:]], 0))
    y.set_shape([None, *volumes.shape[2:]])
    return y


def _of_src(op, src, weights, dz):
    shape, padding = op.get_attr("weights_shape"), text(op, "padding")
    kernel = shape[:3]
    filters = tf.reshape(weights, shape)
    odd = all(k % 2 for k in kernel)
    if list(op.get_attr("strides")) != [1, 1, 1] or (padding == "SAME" and not odd):
        return vjp(lambda x: _by_tensorflow(op, x, filters), [src], dz)[0]
    flipped = tf.transpose(tf.reverse(filters, [0, 1, 2]), [0, 1, 2, 4, 3])
    src_layout, dst_layout = text(op, "src_layout"), text(op, "dst_layout")
    depth = _out_depth(op)
    if padding == "VALID" and max(kernel) > 1:
        plane = [[k - 1, k - 1] for k in kernel[1:]]
        plane = [*plane, [0, 0]] if dst_layout == NHWC else [[0, 0], *plane, [0, 0]]
        around = [[0, 0], [kernel[0] - 1] * 2, *plane]
        dz = _slices(tf.pad(_volumes(dz, depth), around))
        depth += 2 * (kernel[0] - 1)
    return conv_volume(
        dz,
        flipped,
        depth=depth,
        padding=padding,
        algorithm=text(op, "algorithm"),
        src_layout=dst_layout,
        dst_layout=src_layout,
    )


def _of_weights(op, src, dz):
    shape, strides = op.get_attr("weights_shape"), op.get_attr("strides")
    depth, outs, stride = op.get_attr("depth"), _out_depth(op), strides[0]
    geometry = ConvGeometry(
        weights_shape=tuple(shape[1:]),
        groups=1,
        strides=tuple(strides[1:]),
        dilations=(1, 1),
        padding=text(op, "padding"),
        src_layout=text(op, "src_layout"),
        dst_layout=text(op, "dst_layout"),
        algorithm=text(op, "algorithm"),
    )
    before = 0
    if geometry.padding == "SAME":
        before = max((outs - 1) * stride + shape[0] - depth, 0) // 2
    x, y = _volumes(src, depth), _volumes(dz, outs)
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
        taps.append(backward_weights(geometry, _slices(read), _slices(y[:, first : last + 1])))
    return tf.stack(taps)
