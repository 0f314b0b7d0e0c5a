"""Folds the per-channel affine maps after a convolution into its weights and bias.

    gamma * (conv(x, w) + b - mean) / sqrt(var + eps) + beta
        = conv(x, w * s) + (b - mean) * s + beta,     s = gamma / sqrt(var + eps)

all per output channel, in float64, rounded to float32 once.
"""

from ....graph import Body
from ....ops.records import Convolution
from ...context import Context


def fold_batch_norm(body: Body, context: Context) -> None:
    """Multiplies batch normalisation and other affine maps into the weights before, in float64."""
    followers = context.followers
    for node in body.view:
        if not isinstance(node.payload, Convolution) or node.name not in body.view:
            continue
        while (idiom := followers.sole(node.ref)) and idiom.is_affine:
            payload = node.payload.then_affine(idiom.scale, idiom.shift)
            node = followers.absorb(node, idiom, payload)
