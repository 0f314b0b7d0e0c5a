"""Gradient of 3-D convolutions, through TensorFlow's own."""

import tensorflow as tf

from ..layout import NCHW16C, NHWC
from ..ops.reorder import reorder
from .blocked import elements
from .chain import Chain
from .node import split_inputs, text, vjp


@tf.RegisterGradient("BlockdnnConvVolume")
def _gradient(op, dy):
    shape, offset = op.get_attr("weights_shape"), op.get_attr("weights_offset")
    depth, strides = op.get_attr("depth"), op.get_attr("strides")
    src_layout, dst_layout = text(op, "src_layout"), text(op, "dst_layout")
    chain = Chain.of(text(op, "post_ops"), shape[-1], dst_layout)
    split_inputs(op, 2, op.get_attr("num_args"))

    def formula(src, weights, *args):
        x = src
        if src_layout == NCHW16C:
            x = reorder(x, NCHW16C, NHWC, channels=shape[3])
        sizes = tf.shape(x)
        x = tf.reshape(x, tf.stack([-1, depth, sizes[1], sizes[2], shape[3]]))
        filters = elements(weights, offset, shape)
        y = tf.nn.conv3d(x, filters, [1, *strides, 1], text(op, "padding"))
        sizes = tf.shape(y)
        y = tf.reshape(y, tf.stack([-1, sizes[2], sizes[3], shape[-1]]))
        if dst_layout == NCHW16C:
            y = reorder(y, NHWC, NCHW16C, channels=shape[-1])
        return chain.apply(y, args)

    return vjp(formula, op.inputs, dy)
