"""Channel shuffle on NHWC tensors: Reshape, Transpose, Reshape, or a gather of channels."""

from typing import NamedTuple

import numpy as np

from ....graph import Any, Body, Node, Op, Ref, match
from ...primitives import Shuffle

_PATTERN = Op(
    "Reshape", Op("Transpose", Op("Reshape", Any("src"), Any("split")), Any("order")), Any("shape")
)


class Shuffled(NamedTuple):
    """A shuffle of `src` that ends at node `root`; its first node is the one that reads src."""

    root: str
    first: str
    src: Ref
    payload: Shuffle


def find(node: Node, body: Body) -> Shuffled | None:
    """The shuffle that ends at `node`, unless it is none or something else looks inside."""
    if node.op == "GatherV2" and node.payload is None:
        return _gathered(node, body)
    if node.op != "Reshape" or node.payload is not None:
        return None
    found = match(_PATTERN, node, body.view, body.constants)
    if found is None or not _is_private(found.nodes, body):
        return None
    src, (_, _, first) = found.refs["src"], found.nodes
    group = _group(src, Ref(first), body.shapes)
    order = body.shapes.value(found.refs["order"])
    if group is None or order is None or [int(axis) for axis in order] != [0, 1, 2, 4, 3]:
        return None
    if not body.shapes.equal(src, node.ref):
        return None
    channels = body.shapes.channels(src)
    return Shuffled(
        node.name, first, src, Shuffle(origin=node.name, channels=channels, group=group)
    )


def _gathered(node: Node, body: Body) -> Shuffled | None:
    """A gather by the constant order of a shuffle: channel i * G + j goes to j * C / G + i."""
    src, indices, axis = node.inputs
    order, channels = body.constants.value(indices), body.shapes.channels(src)
    along = body.shapes.value(axis)
    if order is None or channels is None or along is None or node.attr["batch_dims"].i:
        return None
    if int(along) % 4 != 3 or order.shape != (channels,) or channels < 2:
        return None
    group = int(order[1])  # j = 0, i = 1
    if group < 1 or channels % group:
        return None
    if not np.array_equal(order, np.arange(channels).reshape(-1, group).T.reshape(-1)):
        return None
    payload = Shuffle(origin=node.name, channels=channels, group=group)
    return Shuffled(node.name, node.name, src, payload)


def _group(src: Ref, split: Ref, shapes) -> int | None:
    """G where `split` is [N, H, W, C / G, G] of the src [N, H, W, C], else None."""
    whole, parts, channels = shapes.shape(src), shapes.shape(split), shapes.channels(src)
    if channels is None or parts is None or len(parts) != 5 or parts[:3] != whole[:3]:
        return None
    rows, group = parts[3:]
    known = isinstance(rows, int) and isinstance(group, int)
    return group if known and rows * group == channels else None


def _is_private(nodes: tuple[str, ...], body: Body) -> bool:
    """Whether nothing but the next of them reads, fetches or orders the inner nodes."""
    view = body.view
    return all(
        view.use_count(Ref(name)) == 1
        and not view.is_fetched(Ref(name))
        and not view.has_control_edges(name)
        for name in nodes[1:]
    )
