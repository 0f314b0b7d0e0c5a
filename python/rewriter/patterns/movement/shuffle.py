"""Channel shuffle on NHWC tensors: Reshape, Transpose, Reshape, or a gather of channels."""

import numpy as np

from ....graph import Any, Body, Node, Op, Ref, match
from ....ops.records import Shuffle
from ...context import Context
from ..found import Found

ROOTS = ("Reshape", "GatherV2")

_PATTERN = Op(
    "Reshape", Op("Transpose", Op("Reshape", Any("src"), Any("split")), Any("order")), Any("shape")
)


def find(node: Node, body: Body, context: Context) -> Found | str | None:
    """The shuffle that ends at `node`, unless it is none or something else looks inside."""
    if node.op == "GatherV2":
        return _gathered(node, body)
    found = match(_PATTERN, node, body.view, body.constants)
    if found is None or not body.view.is_private(found.nodes[1:], within=(node.name,)):
        return None
    src, (_, _, first) = found.refs["src"], found.nodes
    group = _group(src, Ref(first), body.shapes)
    order = body.shapes.numbers(found.refs["order"])
    if group is None or order != [0, 1, 2, 4, 3]:
        return None
    if not body.shapes.equal(src, node.ref):
        return None
    channels = body.shapes.channels(src)
    payload = Shuffle(origin=node.name, channels=channels, group=group)
    return Found(payload, {"src": src}, node.name, frozenset(found.nodes))


def _gathered(node: Node, body: Body) -> Found | None:
    """A gather by the constant order of a shuffle: channel i * G + j goes to j * C / G + i."""
    src, indices, axis = node.inputs
    order, channels = body.constants.value(indices), body.shapes.channels(src)
    along = body.shapes.number(axis)
    if order is None or channels is None or along is None:
        return None
    if along % 4 != 3 or order.shape != (channels,) or channels < 2:
        return None
    group = int(order[1])  # j = 0, i = 1
    if group < 1 or channels % group:
        return None
    if not np.array_equal(order, np.arange(channels).reshape(-1, group).T.reshape(-1)):
        return None
    payload = Shuffle(origin=node.name, channels=channels, group=group)
    return Found(payload, {"src": src}, node.name)


def _group(src: Ref, split: Ref, shapes) -> int | None:
    """G where `split` is [N, H, W, C / G, G] of the src [N, H, W, C], else None."""
    whole, parts, channels = shapes.shape(src), shapes.shape(split), shapes.channels(src)
    if channels is None or parts is None or len(parts) != 5 or parts[:3] != whole[:3]:
        return None
    rows, group = parts[3:]
    known = isinstance(rows, int) and isinstance(group, int)
    return group if known and rows * group == channels else None
