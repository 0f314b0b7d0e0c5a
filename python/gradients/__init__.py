"""Gradients of the ops; importing this registers them.

Each consists of ops that have gradients themselves, so that second derivatives exist where
TensorFlow has them. The formulas load when the first gradient is asked for: serving needs none.
"""

import functools

import tensorflow as tf

# The ops that have some: to ask what the library has, or to import the formulas, takes some ms.
OPS = (
    "Attention BatchNorm BatchNormGrad Concat Conv ConvBackwardWeights ConvDepthwise ConvTranspose "
    "ConvVolume Eltwise FoldBatchNorm GlobalPool InnerProduct Join LayerNorm LayerNormGrad "
    "PackedMatmul Pad Pool PoolGrad Region Reorder Resize Rnn RnnGrad Shuffle Softmax "
    "SqueezeExcite UpdateSlice"
).split()


@functools.cache
def formulas() -> dict:
    """Op -> (op, *upstream) -> the gradients by the inputs, of each op that has some."""
    from . import conv, movement, node, pixels, planes, products

    return node.GRADIENTS


def _gradient(op, *upstream):
    return formulas()[op.type](op, *upstream)


for name in OPS:
    tf.RegisterGradient(f"Blockdnn{name}")(_gradient)
