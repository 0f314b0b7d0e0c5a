"""Folds the per-channel affine maps after a convolution into its weights and bias.

    gamma * (conv(x, w) + b - mean) / sqrt(var + eps) + beta
        = conv(x, w * s) + (b - mean) * s + beta,     s = gamma / sqrt(var + eps)

all per output channel, in float64, rounded to float32 once.
"""

from ..patterns import Graph
from ..plan import Conv
from .followers import Followers


def fold_batch_norm(graph: Graph, followers: Followers) -> int:
    """Folds what can be folded; returns how many affine maps went."""
    folded = 0
    for node in graph.view:
        if not isinstance(node.payload, Conv) or node.name not in graph.view:
            continue
        while (idiom := followers.sole(node.ref)) and idiom.is_affine:
            payload = node.payload.then_affine(idiom.scale, idiom.shift)
            node = followers.absorb(node, idiom, payload)
            folded += 1
    return folded
