"""[N, C] -> [N, 1, 1, C] right after a global pool, which can write that itself."""

from dataclasses import replace

from ....graph import Body, Node
from ....ops.records import BLOCKED, GlobalPool
from ...context import Context
from ...rules import Found

ROOTS = ("Reshape", "ExpandDims")


def find(node: Node, body: Body, context: Context) -> Found | str | None:
    """The global pool before `node`, with its dimensions kept."""
    pooled = body.view.producer(node.inputs[0])
    if not isinstance(pooled.payload, GlobalPool) or pooled.payload.dst_layout != "nc":
        return None
    shape, channels = body.shapes.shape(node.ref), pooled.payload.channels
    src = body.shapes.shape(pooled.src)
    if shape is None or src is None or tuple(shape) != (src[0], 1, 1, channels):
        return None
    if body.view.use_count(pooled.ref) != 1:
        return None
    payload = replace(pooled.payload, dst_layout=BLOCKED)
    return Found(payload, pooled.by_role, node.name, frozenset((pooled.name,)))
