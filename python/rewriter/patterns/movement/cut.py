"""Slices of channels: runs of neighbours of a picture, each from any channel on.

One of them is a slice; several are what rolls, repetitions and gathers of channels come to.
"""

import numpy as np

from ....graph import Body, Node
from ....ops.records import Concat
from ...context import Context
from ...rules import Found
from . import routing, slices

ROOTS = ("Slice", "StridedSlice", "GatherV2", "ReverseV2", "Roll", "Tile")
NAMED = slices.NAMED
_MOST = 8  # runs of which a concatenation of parts is made; more are copied faster by others


def find(node: Node, body: Body, context: Context) -> Found | None:
    """The channels that `node` takes; other slices are none."""
    taken = runs(node, body)
    if not taken:
        return None
    parts, whole = tuple(map(len, taken)), body.shapes.channels(node.inputs[0])
    payload = Concat(
        origin=node.name,
        channels=sum(parts),
        parts=parts,
        src_parts=tuple((run.start, whole) for run in taken),
    )
    return Found(payload, payload.roles([node.inputs[0]] * len(parts)), node.name)


def runs(node: Node, body: Body) -> list[range]:
    """The channels of its source that a node of ROOTS takes, in their order; none of others."""
    src = node.inputs[0]
    if body.shapes.rank(src) != 4 or body.shapes.channels(src) is None:
        return []
    made = routing.route(node, body, [np.arange(body.shapes.channels(src))])
    if made is None or made[0].ndim != 1 or not made[0].size:
        return []
    order = made[0]
    starts = [0, *(1 + np.flatnonzero(np.diff(order) != 1))]
    if len(starts) > _MOST:
        return []
    stops = [*starts[1:], len(order)]
    return [range(int(order[a]), int(order[b - 1]) + 1) for a, b in zip(starts, stops, strict=True)]
