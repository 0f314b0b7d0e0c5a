"""A cut: some neighbouring channels of a picture, from any channel on."""

import numpy as np

from ....graph import Body, Node
from ....ops.records import Concat
from ...context import Context
from ..found import Found
from . import routing

ROOTS = ("Slice", "StridedSlice")


def find(node: Node, body: Body, context: Context) -> Found | None:
    """The channels that `node` takes; other slices are none."""
    channels = taken(node, body)
    if channels is None:
        return None
    payload = Concat(
        origin=node.name,
        channels=len(channels),
        parts=(len(channels),),
        src_parts=((channels.start, body.shapes.channels(node.inputs[0])),),
    )
    return Found(payload, payload.roles(node.inputs[:1]), node.name)


def taken(node: Node, body: Body) -> range | None:
    """The channels of its source that a node of ROOTS takes, all of them neighbours."""
    src = node.inputs[0]
    if body.shapes.rank(src) != 4 or body.shapes.channels(src) is None:
        return None
    made = routing.route(node, body, [np.arange(body.shapes.channels(src))])
    if made is None or made[0].ndim != 1 or not made[0].size:
        return None
    first, last = int(made[0][0]), int(made[0][-1])
    neighbours = np.array_equal(made[0], np.arange(first, last + 1))
    return range(first, last + 1) if neighbours else None
