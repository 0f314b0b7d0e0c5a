"""Gradient of a 1x1 convolution with the depthwise one behind it: that of the two."""

import tensorflow as tf

from ...layout import NCHW16C
from ...ops.conv.conv import conv
from ..blocked import elements, part_of
from ..chain import Chain
from ..node import padding_argument, split_inputs, text, vjp


@tf.RegisterGradient("BlockdnnConvDepthwise")
def _gradient(op, dy):
    shape, depthwise_shape = op.get_attr("weights_shape"), op.get_attr("depthwise_weights_shape")
    channels, num_args = shape[-1], op.get_attr("num_args")
    algorithm = text(op, "algorithm")
    offset, depthwise_offset = (
        op.get_attr("weights_offset"),
        op.get_attr("depthwise_weights_offset"),
    )
    chain = Chain.of(text(op, "post_ops"), channels, NCHW16C)
    depthwise_chain = Chain.of(text(op, "depthwise_post_ops"), channels, NCHW16C)
    split_inputs(op, 3, num_args, op.get_attr("num_depthwise_args"))

    def formula(src, weights, depthwise_weights, *args):
        src = part_of(src, op.get_attr("src_part"), shape[2], op.get_attr("src_blocks"))
        x = conv(src, elements(weights, offset, shape), algorithm=algorithm)
        x = chain.apply(x, args[:num_args])
        x = conv(
            x,
            elements(depthwise_weights, depthwise_offset, depthwise_shape),
            strides=op.get_attr("strides"),
            dilations=op.get_attr("dilations"),
            padding=padding_argument(op),
            groups=channels,
            algorithm=algorithm,
        )
        return depthwise_chain.apply(x, args[num_args:])

    return vjp(formula, op.inputs, dy)
