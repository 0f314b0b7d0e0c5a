"""A Dense layer on pictures, [N, H, W, C] times a matrix: a 1x1 convolution.

Tensordot makes it of Reshape to [N * H * W, C], MatMul and Reshape back.
"""

import numpy as np

from ....ops.records import BLOCK, Conv
from ...context import AS_PRODUCT
from ...rules import Constant, Match, OneOf, Rule, require


def dense(tf, x, transpose_b, weights):
    """A Dense layer on pictures: a 1x1 convolution."""
    n, h, w, c = tf.sizes(x, 4)
    product = tf.MatMul(tf.reshape(x, [-1, c]), weights, transpose_b=transpose_b)
    return tf.reshape(product, [n, h, w, -1])


def _dense(match: Match) -> Conv:
    weights, channels, root = match["weights"], match.channels(), match.root.name
    weights = np.ascontiguousarray(weights.T if match["transpose_b"] else weights, np.float32)
    outputs = weights.shape[1]
    require(weights.shape[0] == channels and min(channels, outputs) >= BLOCK)
    lowering = match.context.lowering
    # Else only products become so.
    require(lowering is None or lowering.convolves or lowering.weights_only)
    require(match.context.leave.get(match.body.label(root)) != AS_PRODUCT)
    return Conv(
        origin=root,
        is_dense=True,
        channels=outputs,
        weights=weights.reshape(1, 1, channels, outputs),
        in_channels=channels,
        algorithm=match.context.options.algorithm,
    )


RULE = Rule(dense, _dense, like=None, transpose_b=OneOf((False, True)), weights=Constant(rank=2))
