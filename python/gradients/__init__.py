"""Gradients of the ops; importing this registers them.

Each is made of ops that have gradients themselves, so that second derivatives exist where
TensorFlow has them. The formulas load when the first gradient is asked for: serving needs none.
"""

import functools

import tensorflow as tf

from ..native import library


@functools.cache
def formulas() -> dict:
    """Op -> (op, *upstream) -> the gradients by its inputs, of each op that has some."""
    from . import batch_norm, movement, node, pixels, planes, products, region, rnn
    from .conv import conv, conv_depthwise, conv_transpose, conv_volume

    return node.GRADIENTS


def _gradient(op, *upstream):
    if op.type not in formulas():
        raise LookupError(f"{op.type} has no gradient")
    return formulas()[op.type](op, *upstream)


for name in dir(library()):
    if name.startswith("Blockdnn"):
        tf.RegisterGradient(name)(_gradient)
