"""Gradient of a 1x1 convolution with the depthwise one behind it: that of the two."""

from ...layout import NCHW16C
from ...ops.conv.conv import conv
from ..blocked import elements, part_of
from ..chain import Chain
from ..node import gradient_of, vjp


@gradient_of("ConvDepthwise")
def _gradient(called, dy):
    shape, depthwise_shape = called.weights_shape, called.depthwise_weights_shape
    channels, num_args = shape[-1], len(called.args)
    algorithm = called.algorithm
    offset, depthwise_offset = called.weights_offset, called.depthwise_weights_offset
    chain = Chain.of(called.post_ops, channels, NCHW16C)
    depthwise_chain = Chain.of(called.depthwise_post_ops, channels, NCHW16C)

    def formula(src, weights, depthwise_weights, *args):
        src = part_of(src, called.src_part, shape[2], called.src_blocks)
        x = conv(src, elements(weights, offset, shape), padding="VALID", how=algorithm)
        x = chain.apply(x, args[:num_args])
        x = conv(
            x,
            elements(depthwise_weights, depthwise_offset, depthwise_shape),
            strides=called.strides,
            dilations=called.dilations,
            padding=called.padding_argument,
            groups=channels,
            how=algorithm,
        )
        return depthwise_chain.apply(x, args[num_args:])

    return vjp(formula, called.inputs, dy)
