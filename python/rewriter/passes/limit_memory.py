"""Keeps the packed weights of a function within a multiple of its weights.

Packed weights take the memory of plain ones, those of Winograd's F(2x2) 16/9 of it and
those of F(4x4) four times as much. A network of 3x3 convolutions only would exceed three
times its weights: its largest filters, the deepest first, then do without F(4x4), which
gains least where there are most channels and fewest pixels.
"""

from dataclasses import replace

from ...graph import Node
from ..patterns import Graph
from ..plan import Conv, InnerProduct

_BUDGET = 3.0
_SMALL_MODEL = 1 << 20  # floats: packed weights of so few are nobody's concern
_LARGE, _SMALL = 4.0, 16 / 9


def limit_memory(graph: Graph, memory: str) -> None:
    """Restricts the algorithm of convolutions that are free to choose theirs.

    Args:
        memory: "normal" bounds all packed weights by three times the weights (or 4 MB, where
            that is more); "low" packs every filter into its own
            size: no Winograd.
    """
    nodes = [node for node in graph.view.topological() if isinstance(node.payload, Conv)]
    free = [node for node in nodes if _may_transform(node.payload)]
    if memory == "low":
        for node in free:
            _restrict(node, "direct")
        return
    convolutions = sum(node.payload.weights.size for node in nodes)
    budget = max(_SMALL_MODEL, _BUDGET * (convolutions + _inner_products(graph)))
    left = budget - convolutions
    left -= sum((_LARGE - 1) * node.payload.weights.size for node in free)
    for node in sorted(reversed(free), key=lambda node: node.payload.weights.size, reverse=True):
        if left >= 0:
            return
        _restrict(node, "auto_small")
        left += (_LARGE - _SMALL) * node.payload.weights.size


def _may_transform(conv: Conv) -> bool:
    window = conv.weights.shape[:2] == (3, 3) and conv.groups == 1
    return window and conv.strides == conv.dilations == (1, 1) and conv.algorithm == "auto"


def _restrict(node: Node, algorithm: str) -> None:
    node.payload = replace(node.payload, algorithm=algorithm)


def _inner_products(graph: Graph) -> int:
    planned = (node.payload for node in graph.view)
    return sum(p.in_channels * p.channels for p in planned if isinstance(p, InnerProduct))
