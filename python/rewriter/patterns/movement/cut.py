"""Slices of channels: runs of neighbours of a picture, each from any channel on.

One of them is a slice; several are what rolls, repetitions and gathers of channels come to. A
tensor [N, H, W, ...] of whole channels is seen as an array [...] whose entries say which channel of
which tensor lies there; what an op makes of the tensor, it makes of the array (`route`), and any
spelling of a move of channels is the array that comes out in the end.
"""

from collections.abc import Sequence

import numpy as np

from ....graph import MOVES, Body, Node, Ref, move
from ....ops.records import Concat
from ...context import Context
from ...rules import Replacement

ROOTS = ("Slice", "StridedSlice", "GatherV2", "ReverseV2", "Roll", "Tile")
NAMED = tuple(f"{name}_mask" for name in ("begin", "ellipsis", "end", "new_axis", "shrink_axis"))
ROUTES = frozenset(MOVES) - {"Identity", "StopGradient"}
_FIXED = 3  # dimensions N, H, W, which no route touches
_MOST = 8  # runs: TensorFlow copies more than these faster than a concatenation of parts does


def find(node: Node, body: Body, context: Context) -> Replacement | None:
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
    return Replacement(payload, payload.roles([node.inputs[0]] * len(parts)), node.name)


def runs(node: Node, body: Body) -> list[range]:
    """The source's channels that a node takes, in order; empty where it takes anything else."""
    channels = body.shapes.channels(node.inputs[0])
    arrays = route(node, body, [np.arange(channels)]) if channels else None
    if arrays is None or arrays[0].ndim != 1 or not arrays[0].size:
        return []
    (order,) = arrays
    starts = [0, *(1 + np.flatnonzero(np.diff(order) != 1))]
    if len(starts) > _MOST:
        return []
    stops = [*starts[1:], len(order)]
    return [range(int(order[a]), int(order[b - 1]) + 1) for a, b in zip(starts, stops, strict=True)]


def route(node: Node, body: Body, arrays: Sequence[np.ndarray]) -> list[np.ndarray] | None:
    """The outputs' arrays; None where something else than channels moves, or is not known."""
    if node.op == "Reshape":  # to sizes that need not be numbers
        outputs = _reshape(
            body.shapes.shape(node.inputs[0]), body.shapes.shape(node.ref), arrays[0]
        )
    else:
        outputs = move(node, arrays, body.known, hidden=_FIXED)
    shapes = [body.shapes.shape(Ref(node.name, port)) for port in range(len(outputs or ()))]
    pairs = zip(shapes, outputs or (), strict=True)
    return outputs if all(s and s[_FIXED:] == array.shape for s, array in pairs) else None


def _reshape(before, after, array: np.ndarray) -> list[np.ndarray] | None:
    try:
        return [array.reshape(after[_FIXED:])] if before[:_FIXED] == after[:_FIXED] else None
    except (TypeError, ValueError):  # Something is not known, or pixels become channels.
        return None
