"""Gradient of transposed convolutions, through TensorFlow's own."""

import tensorflow as tf

from ..layout import NCHW16C, NHWC
from ..ops.reorder import reorder
from .blocked import elements, part_of, place
from .chain import Chain
from .node import split_inputs, text, vjp


@tf.RegisterGradient("BlockdnnConvTranspose")
def _gradient(op, dy):
    shape, offset = op.get_attr("weights_shape"), op.get_attr("weights_offset")
    strides, crops = op.get_attr("strides"), op.get_attr("crops")
    src_part, dst_part = op.get_attr("src_part"), op.get_attr("dst_part")
    num_args = op.get_attr("num_args")
    layout, channels = text(op, "dst_layout"), shape[2]
    chain = Chain.of(text(op, "post_ops"), channels, layout)
    split_inputs(op, 2, num_args, op.get_attr("num_into"))

    def formula(src, weights, *rest):
        x = reorder(part_of(src, src_part, shape[3]), NCHW16C, NHWC, channels=shape[3])
        y = _transposed(x, elements(weights, offset, shape), strides, crops)
        if layout == NCHW16C:
            y = reorder(y, NHWC, NCHW16C)
        return place(chain.apply(y, rest[:num_args]), dst_part, channels, rest[num_args:])

    return vjp(formula, op.inputs, dy)


def _transposed(x, filters, strides, crops):
    """Everything that source pixels reach, then cut or extended."""
    sizes = tf.shape(x) if None in x.shape else x.shape
    kernel, channels = filters.shape[:2], filters.shape[2]
    height, width = (
        (sizes[1 + axis] - 1) * strides[axis] + max(kernel[axis], strides[axis])
        for axis in range(2)
    )
    shape = tf.stack([sizes[0], height, width, channels])
    y = tf.nn.conv2d_transpose(x, filters, shape, strides, "VALID")
    top, bottom, left, right = crops
    full = [(sizes[1 + axis] - 1) * strides[axis] + kernel[axis] for axis in range(2)]
    y = y[:, top : full[0] - max(bottom, 0), left : full[1] - max(right, 0)]
    return tf.pad(y, [[0, 0], [0, max(0, -bottom)], [0, max(0, -right)], [0, 0]])
