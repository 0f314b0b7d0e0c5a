"""Finds convolutions for which changing the layout costs more than it gains.

An island is what hangs together in blocks. One convolution that pays for the reorders (cost.py) is
enough; others gain little each, and pay together or not at all. Dense layers alone need
no blocks: as inner products they have no reorders at all.
"""

from collections import defaultdict
from dataclasses import dataclass, field

from ....graph import Body, Node, Ref
from ....ops.records import BLOCK, BLOCKED, NHWC, Conv, Convolution
from ...context import AS_PRODUCT, Context
from ...cost import gains_by_blocks, pays_for_reorders
from .place_reorders import PLAIN, change, formats_read, is_one_in_memory

_REASON = "between plain tensors the two reorders would cost more than the convolution gains"


@dataclass
class _Island:
    """Planned nodes joined by the blocked tensors between them.

    Attributes:
        convolutions: those among them.
        moved: how many elements the reorders at the edges move; 0 where it has none.
    """

    convolutions: list[Node] = field(default_factory=list)
    moved: int = 0


def leave_losing(body: Body, context: Context) -> dict:
    """Starts again without the convolutions that would lose more by reorders than they gain."""
    islands = _islands(body)
    reordered = sorted((i for i in islands if i.moved), key=lambda i: i.moved, reverse=True)
    parts, leave = tuple(_labels(island, body) for island in reordered), dict(context.leave)
    # What TensorFlow computes need not be deterministic.
    for island in () if context.options.deterministic else islands:
        if reason := _loss(island, body):
            leave |= dict.fromkeys(_labels(island, body), reason)
    return {"parts": parts, "leave": leave}


def _labels(island: _Island, body: Body) -> tuple[str, ...]:
    return tuple(body.label(node.payload.origin) for node in island.convolutions)


def _loss(island: _Island, body: Body) -> str | None:
    """Why the convolutions are better left alone; None where they are not."""
    convolutions = island.convolutions
    read = ((node, node.payload) for node in convolutions)
    plain = [n for n, conv in read if conv.src_layout == NHWC and conv.in_channels >= BLOCK]
    if not (island.moved or plain) or any(pays_for_reorders(node.payload) for node in convolutions):
        return None
    if all(isinstance(node.payload, Conv) and node.payload.is_dense for node in convolutions):
        return AS_PRODUCT
    moved = island.moved + sum(body.shapes.elements(node.src) for node in plain)
    written = sum(body.shapes.elements(node.ref) for node in convolutions)
    return None if gains_by_blocks(written, moved) else _REASON


def _islands(body: Body) -> list[_Island]:
    """The islands that have convolutions; all readers of a blocked tensor belong together."""
    view, parent = body.view, {}

    def root(key: str | Ref) -> str | Ref:
        while parent.setdefault(key, key) != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    reordered = {(ref, change(body, ref, PLAIN)) for ref in view.fetches}
    for node in view.topological():
        reads = list(zip(node.inputs, formats_read(node), strict=True))
        if node.op != "Shape":
            reordered.update((ref, change(body, ref, wanted)) for ref, wanted in reads)
        joined = [ref for ref, wanted in reads if wanted.layout == BLOCKED]
        if node.payload is not None and node.payload.dst_layout == BLOCKED:
            joined.append(node.ref)
        for ref in joined:
            parent[root(ref)] = root(node.name)
    islands: dict[str | Ref, _Island] = defaultdict(_Island)
    for node in view.topological():
        if isinstance(node.payload, Convolution):
            islands[root(node.name)].convolutions.append(node)
    for ref, (current, wanted) in reordered:
        if current != wanted and not is_one_in_memory(body, ref) and root(ref) in islands:
            islands[root(ref)].moved += body.shapes.elements(ref)
    return list(islands.values())
