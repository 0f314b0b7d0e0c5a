"""Gradient of element-wise chains."""

import tensorflow as tf

from ..blocked import part_of, place
from ..chain import Chain
from ..node import split_inputs, text, vjp


@tf.RegisterGradient("BlockdnnEltwise")
def _gradient(op, dy):
    """From the result where that tells all, otherwise through the chain in TensorFlow ops."""
    channels, layout = op.get_attr("channels"), text(op, "layout")
    chain = Chain.of(text(op, "post_ops"), channels, layout)
    src_part, dst_part = op.get_attr("src_part"), op.get_attr("dst_part")
    num_args, num_into = op.get_attr("num_args"), op.get_attr("num_into")
    (_src,), args, into = split_inputs(op, 1, num_args, num_into)
    if not (src_part or dst_part or into):
        grads = chain.backward(op.outputs[0], dy, args)
        if grads is not None:
            dx, dargs = grads
            return [dx, *dargs]

    def formula(src, *rest):
        x = part_of(src, src_part, channels)
        return place(chain.apply(x, rest[:num_args]), dst_part, channels, rest[num_args:])

    return vjp(formula, op.inputs, dy)
