"""Gradients of the ops; importing this registers them.

Each is made of ops that have gradients themselves, so that second derivatives exist where
TensorFlow has them. The formulas load when the first gradient is asked for: serving needs none.
"""

import tensorflow as tf

from ..native import library


def _gradient(op, *upstream):
    from . import batch_norm, movement, node, pixels, planes, products, region
    from .conv import conv, conv_depthwise, conv_transpose, conv_volume

    if op.type not in node.GRADIENTS:
        raise LookupError(f"{op.type} has no gradient")
    return node.GRADIENTS[op.type](op, *upstream)


for name in dir(library()):
    if name.startswith("Blockdnn"):
        tf.RegisterGradient(name)(_gradient)
